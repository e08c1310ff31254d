/** One change to all jobs of a state that pass a filter, a step at a time. */
import type { BulkRequest, BulkStep } from '../../../values/operations/requests.ts'
import { changeAll, isDueForChange, MOST_SAMPLED } from '../../bulk.ts'
import { isFinal, type Job, ORIGIN } from '../job.ts'
import type { MemoryState } from '../state.ts'
import { cancel } from './cancel.ts'
import { cursorAt, jobsAfter, passes, placeIn } from './list.ts'
import { remove } from './remove.ts'
import { requeue } from './requeue.ts'
import { update } from './update.ts'

/** Jobs that a step looks at: some milliseconds. */
const MOST_LOOKED_AT = 10_000

export function bulk(state: MemoryState, request: BulkRequest): BulkStep {
  const { queue: name, state: of, change, limit, filter = {} } = request
  const now = ORIGIN + state.now()
  const queue = state.queues.get(name)
  const ids: string[] = []
  let next: string | null = null
  let seen = 0
  for (const job of queue === undefined ? [] : jobsAfter(queue, of, placeIn(state, of, request.after))) {
    seen++
    if (passes(job, filter) && isDueForChange(looked(job), request, now)) ids.push(job.id)
    if (seen < MOST_LOOKED_AT && (limit === 0 || ids.length < limit)) continue
    next = cursorAt(job, of)
    break
  }
  const byId = {
    requeue: (input: { ids: readonly string[] }) => requeue(state, input),
    cancel: (input: { ids: readonly string[] }) => cancel(state, input),
    remove: (input: { ids: readonly string[] }) => remove(state, input),
    update: (input: Parameters<typeof update>[1]) => update(state, input),
  }
  const changed = limit === 0 ? 0 : changeAll(change, ids, byId)
  return {
    looked: seen,
    matched: ids.length,
    changed,
    sample: limit === 0 ? ids.slice(0, MOST_SAMPLED) : [],
    next,
    now,
  }
}

const looked = (job: Job) => ({
  ...{ state: job.state, priority: job.priority, pushedAt: ORIGIN + job.pushedAt, dueAt: ORIGIN + job.dueAt },
  startedAt: job.worker === null ? null : ORIGIN + job.startedAt,
  finishedAt: isFinal(job.state) ? ORIGIN + job.finishedAt : null,
})
