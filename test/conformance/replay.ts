/** Replays a lifecycle vector on a store. */

import assert from 'node:assert/strict'
import type {
  Encoded,
  JobError,
  NewJob,
  QueueStats,
  RequeueDeadRequest,
  RequeueRequest,
  Store,
} from '../../src/store.ts'
import { Fences } from './fences.ts'
import {
  EPOCH,
  type Json,
  longId,
  type Step,
  shorten,
  type Vector,
  type VectorBody,
  type VectorJob,
} from './vectors.ts'

const ERROR: JobError = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }

/** `clock` is what the store was opened with. */
export async function replay(vector: Vector, store: Store, clock: { now: number }): Promise<void> {
  const cursors = new Map<string, string>()
  const fences = new Fences(store)
  for (const [index, step] of vector.steps.entries()) {
    clock.now = EPOCH + step.at
    const answer = await call(fences.store, step, cursors)
    if (step.out === undefined) continue
    const actual = shorten(answer)
    const expected = step.out
    const where = `${vector.name}, step ${index + 1} (${step.op} at ${step.at})`
    assert.ok(
      matches(actual, expected),
      `${where}\nexpected ${JSON.stringify(expected)}\nbut got  ${JSON.stringify(actual)}`,
    )
  }
}

/** What is given must match: lists in full, of objects the named fields. */
function matches(actual: Json | undefined, expected: Json): boolean {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return false
    return expected.every((item, index) => matches(actual[index], item))
  }
  if (expected === null || typeof expected !== 'object') return actual === expected
  if (actual === null || actual === undefined || typeof actual !== 'object' || Array.isArray(actual)) return false
  return Object.entries(expected).every(([name, value]) => matches(actual[name], value))
}

/** @param cursors by job, of the last list that had it */
async function call(store: Store, step: Step, cursors: Map<string, string>): Promise<unknown> {
  switch (step.op) {
    case 'configure':
      return (await store.configure({ queue: 'q', ...step.in })) ?? null
    case 'settings':
      return store.admin.settings(step.in.queue)
    case 'noteClaims':
      return store.noteClaims(step.in.queues)
    case 'push':
      return store.push(step.in.jobs.map(newJob))
    case 'claim':
      return store.claim({ queue: 'q', worker: 'w', limit: 100, lease: 60_000, ...step.in })
    case 'complete': {
      const completions = step.in.items.map(({ id, fence, result }) => ({
        id: longId(id),
        fence,
        result: encoded(result),
      }))
      return store.complete(step.in.queue ?? 'q', completions)
    }
    case 'fail': {
      const failures = step.in.items.map(({ id, ...failure }) => ({ error: ERROR, ...failure, id: longId(id) }))
      return store.fail(step.in.queue ?? 'q', failures)
    }
    case 'release': {
      const releases = step.in.items.map((item) => ({ ...item, id: longId(item.id) }))
      return store.release(step.in.queue ?? 'q', releases)
    }
    case 'extend': {
      const { queue = 'q', lease, items } = step.in
      const extensions = items.map(({ id, fence, progress }) => ({
        id: longId(id),
        fence,
        progress: encoded(progress),
      }))
      return store.extend(queue, lease, extensions)
    }
    case 'cancel':
      return store.cancel(step.in.ids.map(longId))
    case 'find':
      return store.find(step.in.ids.map(longId))
    case 'sweep':
      return store.sweep(step.in.limit)
    case 'stats':
      return sorted(await store.stats(step.in))
    case 'record':
      return (await store.record(step.in.slices)) ?? null
    case 'list': {
      const { after, ...rest } = step.in
      const from = after === undefined ? {} : { after: cursors.get(longId(after)) ?? 'of no list' }
      const listed = await store.admin.list({ queue: 'q', ...rest, ...from })
      for (const { id, cursor } of listed) cursors.set(id, cursor)
      return listed
    }
    case 'limitGroup':
      return (await store.limitGroup?.(step.in.queue ?? 'q', step.in.group, step.in.limits)) ?? null
    case 'ahead':
      return store.admin.ahead?.(longId(step.in.id))
    case 'groups':
      return store.admin.groups?.({ queue: 'q', ...step.in })
    case 'requeue':
      return store.admin.requeue(requeueRequest(step.in))
  }
}

function requeueRequest(given: { ids: string[] } | RequeueDeadRequest): RequeueRequest {
  if ('ids' in given) return { ids: given.ids.map(longId) }
  return given.until === undefined ? given : { ...given, until: EPOCH + given.until }
}

export function newJob(job: VectorJob): NewJob {
  return {
    queue: 'q',
    priority: 4,
    delay: 0,
    key: null,
    group: null,
    attempts: 3,
    timeout: null,
    trace: null,
    ...job,
    id: longId(job.id),
    runAt: job.runAt === undefined ? null : EPOCH + job.runAt,
    data: encoded(job.data) ?? { encoding: 'json', body: 'null' },
  }
}

function encoded(body: VectorBody | null | undefined): Encoded | null {
  if (body === null || body === undefined) return null
  if (body.encoding === 'json') return body
  return { encoding: body.encoding, body: new Uint8Array(Buffer.from(body.base64, 'base64')) }
}

/** The contract leaves the order of queues and histograms open. */
function sorted(stats: QueueStats[]): QueueStats[] {
  for (const { histograms } of stats) {
    histograms.sort((a, b) => a.priority - b.priority || a.metric.localeCompare(b.metric))
  }
  return stats.sort((a, b) => a.queue.localeCompare(b.queue))
}
