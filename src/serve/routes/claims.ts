/** The worker's side: claim, complete, fail, release, extend. */
import { encode } from '../../encoding.ts'
import { isMillpondError } from '../../errors.ts'
import { Recorder } from '../../histogram.ts'
import { checkId } from '../../ids.ts'
import { jobError } from '../../job.ts'
import { checkQueueName } from '../../names.ts'
import type { Claimed, Failure } from '../../store.ts'
import { answer } from '../../web/answer.ts'
import { clientOf } from '../../web/client.ts'
import { preferredWait } from '../../web/headers.ts'
import { onUnsent } from '../../web/incoming.ts'
import { Slots } from '../../web/settings.ts'
import { conflict, unknownJob } from '../refuse.ts'
import { type Route, route } from '../route.ts'
import { encodedResult, failuresOf, type ToldFailure } from '../settle.ts'
import * as shapes from '../shapes.ts'
import { claimView } from '../views.ts'
import { type Parts, PREFER, REQUESTED_WITH } from './parts.ts'

interface Told {
  id: string
  fence: number
}
interface ClaimBody {
  worker?: string
  limit?: number
  lease?: number
}
interface Settlement {
  complete?: (Told & { result?: unknown })[]
  fail?: ToldFailure[]
  release?: Told[]
}

export function claimRoutes({ store, sweeper, claims, limits, onError }: Parts): Route[] {
  const { maxPayload, maxWait } = limits
  const waiting = new Slots(limits.maxWaiting, limits.maxWaitingPerClient)

  return [
    route<ClaimBody>({
      method: 'POST',
      path: '/v1/queues/{queue}/claims',
      id: 'claimJobs',
      tag: 'claims',
      summary: 'Claim jobs to work on',
      description:
        'Each job comes with a `fence`, which every later word on the claim states. Complete, fail, release or extend it before `leaseUntil`, or another worker gets it. With `Prefer: wait` the answer comes when there is a job.',
      headers: { prefer: PREFER, 'x-requested-with': REQUESTED_WITH },
      body: { schema: shapes.claimRequest, required: false },
      answers: { 200: { description: 'The jobs, none if there is nothing to do.', schema: shapes.claims } },
      problems: [413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const lease = body.lease ?? null
        const asked = preferredWait(request)
        const free = asked === undefined ? undefined : waiting.take(clientOf(request))
        const wait = free === undefined ? 0 : Math.min((asked ?? 0) * 1000, maxWait)
        try {
          const ask = { queue, worker: body.worker ?? 'http', limit: body.limit ?? 1, lease }
          const claimed = await claims.claim(ask, wait, request.signal)
          record(queue, claimed)
          const jobs = await readable(queue, claimed)
          const applied = wait === 0 ? {} : { headers: { 'preference-applied': `wait=${Math.ceil(wait / 1000)}` } }
          const response = answer(request, { jobs }, applied)
          // So far an abort says that nobody waits for the answer. From now on it may come of an answer that was sent.
          if (request.signal.aborted) await claims.giveBack(queue, claimed.jobs)
          else onUnsent(request, () => void claims.giveBack(queue, claimed.jobs))
          return response
        } finally {
          free?.()
        }
      },
    }),
    route<Told & { result?: unknown }>({
      method: 'POST',
      path: '/v1/queues/{queue}/jobs/{id}/complete',
      id: 'completeJob',
      tag: 'claims',
      summary: 'The job is done',
      body: { schema: shapes.completion, required: true },
      answers: { 200: { description: 'The store knows.', schema: shapes.done } },
      problems: [404, 409, 413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const { queue, id } = claimOf(params)
        const result = encodedResult(body.result, 'result', maxPayload)
        const [outcome] = await store.complete(queue, [{ id, fence: body.fence, result }])
        if (outcome !== 'ok') throw stale(id)
        return answer(request, { id, outcome: 'done' })
      },
    }),
    route<ToldFailure>({
      method: 'POST',
      path: '/v1/queues/{queue}/jobs/{id}/fail',
      id: 'failJob',
      tag: 'claims',
      summary: 'The attempt failed',
      description:
        'Another attempt follows after `retry`, or by the retry policy of the queue (unless set: 1 s doubled with each attempt, an hour at most). With `retry: false`, or when all attempts are used up, the job is dead.',
      body: { schema: shapes.failure, required: true },
      answers: { 200: { description: 'The store knows.', schema: shapes.failed } },
      problems: [404, 409, 413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const { queue, id } = claimOf(params)
        const failures = failuresOf([{ ...body, id }])
        const [outcome] = await store.fail(queue, failures)
        if (outcome === 'stale' || outcome === undefined) throw stale(id)
        due(failures)
        return answer(request, { id, outcome })
      },
    }),
    route<Told>({
      method: 'POST',
      path: '/v1/queues/{queue}/jobs/{id}/release',
      id: 'releaseJob',
      tag: 'claims',
      summary: 'Give the job back as if it had never been claimed',
      body: { schema: shapes.release, required: true },
      answers: { 200: { description: 'It waits again, in its old place.', schema: shapes.released } },
      problems: [404, 409, 413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const { queue, id } = claimOf(params)
        const [outcome] = await store.release(queue, [{ id, fence: body.fence }])
        if (outcome !== 'ok') throw stale(id)
        return answer(request, { id, outcome: 'waiting' })
      },
    }),
    route<Told & { lease?: number; progress?: unknown }>({
      method: 'POST',
      path: '/v1/queues/{queue}/jobs/{id}/extend',
      id: 'extendClaim',
      tag: 'claims',
      summary: 'The worker is still at it',
      description:
        'The claim holds from now for `lease`, never shorter than before. A 409 says that it is over, with `JobCancelled` if that is why.',
      body: { schema: shapes.extension, required: true },
      answers: { 200: { description: 'The claim holds.', schema: shapes.extended } },
      problems: [404, 409, 413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const { queue, id } = claimOf(params)
        const lease = body.lease ?? null
        const progress = body.progress === undefined ? null : encode(body.progress, 'progress', maxPayload)
        const [outcome] = await store.extend(queue, lease, [{ id, fence: body.fence, progress }])
        if (outcome === 'cancelled')
          throw conflict('JobCancelled', 'The job was cancelled. Stop working on it.', { id })
        if (outcome !== 'ok') throw stale(id)
        return answer(request, { id })
      },
    }),
    route<Settlement>({
      method: 'POST',
      path: '/v1/queues/{queue}/settle',
      id: 'settleJobs',
      tag: 'claims',
      summary: 'Complete, fail and release many jobs',
      description: 'One outcome for each, in order; one that is stale does not spoil the others.',
      body: { schema: shapes.settlement, required: true },
      answers: { 200: { description: 'What became of each.', schema: shapes.settlementOutcome } },
      problems: [413, 415, 422, 503],
      handle: async ({ request, params, body }) => {
        const queue = checkQueueName(params.queue)
        const completions = (body.complete ?? []).map(({ id, fence, result }, index) => {
          return {
            id: id.toLowerCase(),
            fence,
            result: encodedResult(result, `result of complete.${index}`, maxPayload),
          }
        })
        const failures = failuresOf((body.fail ?? []).map(lowered))
        const releases = (body.release ?? []).map(lowered)
        // In one turn, so that stores can do all in one commit.
        const [complete, fail, release] = await Promise.all([
          completions.length === 0 ? [] : store.complete(queue, completions),
          failures.length === 0 ? [] : store.fail(queue, failures),
          releases.length === 0 ? [] : store.release(queue, releases),
        ])
        due(failures)
        return answer(request, { complete, fail, release })
      },
    }),
  ]

  /** The next attempts are swept in time; of those by the queue's policy the next sweep learns by itself. */
  function due(failures: readonly Failure[]): void {
    for (const { delay } of failures) if (typeof delay === 'number') sweeper.due(delay)
  }

  /** The waits; how long jobs ran is known only to those who ran them. Nobody's answer hangs on it. */
  function record(queue: string, { now, jobs }: Claimed): void {
    if (jobs.length === 0) return
    const recorder = new Recorder(queue)
    for (const { priority, dueAt } of jobs) recorder.add(priority, 'wait', Math.max(0, now - dueAt))
    store.record(recorder.take()).catch((error: unknown) => onError(error, undefined))
  }

  /** Jobs whose payload nobody can read fail as they would in a worker of ours; the others are handed out. Never rejects for the store. */
  async function readable(queue: string, { now, jobs, lease }: Claimed): Promise<Record<string, unknown>[]> {
    const views: Record<string, unknown>[] = []
    for (const claimed of jobs) {
      try {
        views.push(claimView(queue, claimed, now, lease))
      } catch (error) {
        if (!isMillpondError(error, 'PayloadNotDecodable')) throw error
        const { id, fence } = claimed
        // If the store does not hear of it the lease runs out. The others are claimed, whatever becomes of this one.
        await store.fail(queue, [{ id, fence, error: jobError(error), delay: 'backoff' }]).catch(() => {})
      }
    }
    return views
  }
}

/** @throws InvalidName for a queue, Refusal for an id that is none: nothing has it */
function claimOf(params: Readonly<Record<string, string>>): { queue: string; id: string } {
  const queue = checkQueueName(params.queue)
  try {
    return { queue, id: checkId(params.id) }
  } catch {
    throw unknownJob()
  }
}

function lowered<T extends Told>(told: T): T {
  return { ...told, id: told.id.toLowerCase() }
}

function stale(id: string): Error {
  const detail =
    'The claim is over: its lease ran out, or the job was finished, cancelled or claimed by another. Nothing was changed.'
  return conflict('StaleAttempt', detail, { id })
}
