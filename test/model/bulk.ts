/** A bulk change on the store and on the model: all steps of it, with nothing in between. */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../src/store.ts'
import { JOB_STATES, type JobRecord, type JobState } from '../../src/values/jobs/records.ts'
import type { BulkChange, BulkStep, JobFilter } from '../../src/values/operations/requests.ts'
import { passes } from './filters.ts'
import type { Model } from './model.ts'

export interface BulkOperation {
  queue: string
  state: JobState
  kind: BulkChange['kind']
  limit: number
  filter: JobFilter | null
  priority: number | undefined
  /** Milliseconds from now. */
  runAt: number | undefined
}

const STATES: Record<BulkChange['kind'], readonly JobState[]> = {
  requeue: ['dead', 'cancelled'],
  cancel: ['blocked', 'scheduled', 'waiting', 'running'],
  remove: JOB_STATES,
  update: ['blocked', 'scheduled', 'waiting'],
}

export async function bulkOnBoth(store: Store, model: Model, operation: BulkOperation, now: number): Promise<void> {
  const { queue, state, kind, filter } = operation
  if (!STATES[kind].includes(state)) return
  const { priority, runAt } = operation
  const change: BulkChange =
    kind === 'update'
      ? { kind, ...(priority !== undefined && { priority }), ...(runAt !== undefined && { runAt: now + runAt }) }
      : { kind }
  const listed = model.list(queue, state).filter((job) => filter === null || passes(job, filter))
  const expected = listed.filter((job) => change.kind !== 'update' || !isAs(job, change, now)).map(({ id }) => id)
  // A step may end jobs, or let them go, that the next one would have looked at.
  const ends = change.kind === 'cancel' || change.kind === 'remove'
  const freesOthers = (id: string) => model.graph.openOf(id).length > 0 || model.isFollowed(id)
  if (ends && operation.limit <= expected.length && expected.some(freesOthers)) return
  const run = (limit: number) => steps(store, { queue, state, change, limit, ...(filter !== null && { filter }) })
  const count = await run(0)
  assert.equal(count.matched, expected.length)
  assert.ok(count.sample.every((id) => expected.includes(id)) && count.sample.length === Math.min(10, expected.length))
  const { matched, changed } = await run(operation.limit)
  assert.equal(matched, expected.length)
  if (change.kind !== 'requeue') assert.equal(changed, expected.length)
  if (change.kind === 'cancel') model.cancel(expected)
  else if (change.kind === 'remove') model.remove(expected)
  else if (change.kind === 'update') model.update(expected.map((id) => ({ ...change, id })))
  else {
    // Which of several jobs with one key comes back is open, so the model follows.
    const found = await store.operations.find({ ids: expected })
    const ids = expected.filter((_, at) => found[at]?.state === 'waiting' || found[at]?.state === 'blocked')
    assert.equal(changed, ids.length)
    assert.equal(model.requeue({ ids }).requeued, changed)
    assert.equal(model.requeue({ ids: expected }).requeued, 0)
  }
}

/** Whether an update would change nothing. */
function isAs(job: JobRecord, change: { priority?: number; runAt?: number }, now: number): boolean {
  const { priority = job.priority, runAt = job.dueAt } = change
  return job.priority === priority && (job.dueAt === runAt || (job.state === 'waiting' && runAt <= now))
}

async function steps(store: Store, request: Parameters<Store['operations']['bulk']>[0]): Promise<BulkStep> {
  const all: BulkStep = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 0 }
  for (let after: string | null | undefined; after !== null; ) {
    const step: BulkStep = await store.operations.bulk({ ...request, ...(after !== undefined && { after }) })
    assert.ok(request.limit === 0 ? step.changed === 0 : step.matched <= request.limit, 'a step keeps to its limit')
    assert.ok(step.matched <= step.looked && step.changed <= step.matched)
    assert.ok(!isDeepStrictEqual(step.next, after), 'a run goes on')
    all.looked += step.looked
    all.matched += step.matched
    all.changed += step.changed
    all.sample.push(...step.sample)
    after = step.next
  }
  return all
}
