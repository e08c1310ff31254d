/** Replays a lifecycle vector on a store. */

import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import type { BulkStep, Listed, QueueStats } from '../../src/values/operations/requests.ts'
import { countingFences } from './fences.ts'
import { inputOf } from './inputs.ts'
import { EPOCH, type Json, type Step, shorten, type Vector } from './vectors.ts'

/** `clock` is what the store was opened with. */
export async function replay(vector: Vector, store: Store, clock: { now: number }): Promise<void> {
  const cursors = new Map<string, string>()
  const counting = countingFences(store)
  for (const [index, step] of vector.steps.entries()) {
    clock.now = EPOCH + step.at
    const answer = await call(counting, step, cursors)
    if (step.out === undefined) continue
    const actual = shorten(answer)
    const expected = store.capabilities.counts ? step.out : withoutCounts(step.out)
    const where = `${vector.name}, step ${index + 1} (${step.op} at ${step.at})`
    assert.ok(
      matches(actual, expected),
      `${where}\nexpected ${JSON.stringify(expected)}\nbut got  ${JSON.stringify(actual)}`,
    )
  }
}

const COUNTED: ReadonlySet<string> = new Set(['counts', 'totals', 'oldestWaiting', 'promoted', 'expired', 'nextDue'])

/** What a store that counts inexactly can be held to. */
function withoutCounts(expected: Json): Json {
  if (Array.isArray(expected)) return expected.map(withoutCounts)
  if (expected === null || typeof expected !== 'object') return expected
  return Object.fromEntries(Object.entries(expected).filter(([name]) => !COUNTED.has(name)))
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

/** @param cursors by job, of the last list that had it; and `next` of the last list or bulk change */
async function call(store: Store, { op, in: given }: Step, cursors: Map<string, string>): Promise<unknown> {
  const input = inputOf(op, given, cursors)
  // The vector says which operation it is for, and what goes in.
  const operation = store.operations[op] as (input: unknown) => Promise<unknown>
  const answer = await operation(input)
  if (op === 'list') remember(answer as Listed, cursors)
  if (op === 'bulk') remember({ jobs: [], next: (answer as BulkStep).next }, cursors)
  return op === 'stats' ? sorted(answer as QueueStats[]) : (answer ?? null)
}

function remember({ jobs, next }: Listed, cursors: Map<string, string>): void {
  for (const { id, cursor } of jobs) cursors.set(id, cursor)
  if (next !== null) cursors.set('next', next)
}

/** The contract leaves the order of queues and histograms open. */
function sorted(stats: QueueStats[]): QueueStats[] {
  for (const { histograms } of stats) {
    histograms.sort((a, b) => a.priority - b.priority || a.metric.localeCompare(b.metric))
  }
  return stats.sort((a, b) => a.queue.localeCompare(b.queue))
}
