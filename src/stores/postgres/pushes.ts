/**
 * Pushes that are made in one tick go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whichever came first by chance.
 */
import { Batcher } from '../../batch/batcher.ts'
import type { NewJob, PushOutcome } from '../../store.ts'
import { areAlike } from '../jobs.ts'
import type { Calls } from './connection/calls.ts'
import type { Notifier } from './notifier.ts'
import { jobsText, outcomeFrom, plainArray, textArray } from './wire.ts'

const UNLIMITED = Number.POSITIVE_INFINITY

export type Pushes = Batcher<readonly NewJob[], PushOutcome[]>

export function pushesOf(calls: Calls, notifier: Notifier): Pushes {
  return new Batcher(
    async (pushes) => {
      const outcomes = await pushAll(pushes.flat())
      return pushes.map(({ length }) => outcomes.splice(0, length))
    },
    { items: UNLIMITED, bytes: UNLIMITED, calls: UNLIMITED },
  )

  async function pushAll(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const { call, values } = callFor(jobs, calls.now(), notifier.listener)
    const answer = await calls.repeatable<string[] | null>(call, [...values, false], () => [...values, true])
    const outcomes = answer?.map(outcomeFrom) ?? jobs.map(({ id }): PushOutcome => ({ status: 'pushed', id }))
    const queuesWith = (status: PushOutcome['status']) =>
      new Set(jobs.flatMap(({ queue }, at) => (outcomes[at]?.status === status ? [queue] : [])))
    for (const queue of queuesWith('pushed')) notifier.bells.ring('work', queue)
    for (const queue of queuesWith('full')) notifier.noted('room', queue)
    return outcomes
  }
}

/** The last value, `again`, is still to come. @param listener who wants to be told of room */
function callFor(jobs: readonly NewJob[], now: number | null, listener: string | null) {
  const [first] = jobs
  if (first === undefined || !areAlike(jobs)) {
    return { call: 'push_jobs($1, true, $2, $4, $3)', values: [jobsText(jobs), now, listener] }
  }
  const { queue, priority, delay, runAt, group, attempts, timeout, trace, cost = 1 } = first
  const fresh = jobs.every((job) => job.fresh === true)
  const ids = plainArray(jobs.map(({ id }) => id))
  const data = textArray(jobs.map((job) => job.data.body as string))
  return {
    call: 'push_list($1, $2, $3, $4::smallint, $5, $6, $7, $8, $9, $10, true, $11, $14, $15, $12, $13)',
    values: [queue, ids, data, priority, delay, runAt, group, attempts, timeout, trace, now, listener, cost, fresh],
  }
}
