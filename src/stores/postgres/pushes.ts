/**
 * Pushes that are made in one tick go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whichever came first by chance. One of all or none
 * has a call of its own, in its turn.
 */
import { Batcher } from '../../batch/batcher.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { areAlike } from '../jobs.ts'
import { hasParents } from '../lacking.ts'
import type { Calls } from './connection/calls.ts'
import { graphValues } from './graphs.ts'
import type { Notifier } from './notifier.ts'
import { jobsText, outcomeFrom, plainArray, textArray } from './wire.ts'

const UNLIMITED = Number.POSITIVE_INFINITY

interface Push {
  jobs: readonly NewJob[]
  /** All are stored, or none. */
  whole: boolean
}

export type Pushes = Batcher<Push, PushOutcome[]>

export function pushesOf(calls: Calls, notifier: Notifier): Pushes {
  return new Batcher(
    async (pushes) => {
      const settled: (PushOutcome[] | Error)[] = []
      for (const together of runsOf(pushes)) settled.push(...(await pushTogether(together)))
      return settled
    },
    { items: UNLIMITED, bytes: UNLIMITED, calls: UNLIMITED },
  )

  async function pushTogether(pushes: readonly Push[]): Promise<(PushOutcome[] | Error)[]> {
    try {
      const outcomes = await pushAll(
        pushes.flatMap(({ jobs }) => jobs),
        pushes.some(({ whole }) => whole),
      )
      return pushes.map(({ jobs }) => outcomes.splice(0, jobs.length))
    } catch (error) {
      return pushes.map(() => error as Error)
    }
  }

  async function pushAll(jobs: readonly NewJob[], whole: boolean): Promise<PushOutcome[]> {
    const { call, values } = callFor(jobs, whole, calls.now(), notifier.listener)
    const answer = await calls.repeatable<string[] | null>(call, [...values, false], () => [...values, true])
    const outcomes = answer?.map(outcomeFrom) ?? jobs.map(({ id }): PushOutcome => ({ status: 'pushed', id }))
    const queuesWith = (status: PushOutcome['status']) =>
      new Set(jobs.flatMap(({ queue }, at) => (outcomes[at]?.status === status ? [queue] : [])))
    for (const queue of queuesWith('pushed')) notifier.bells.ring('work', queue)
    for (const queue of queuesWith('full')) notifier.noted('room', queue)
    return outcomes
  }
}

/** One after another: those that can go in one call. */
function runsOf(pushes: readonly Push[]): Push[][] {
  const runs: Push[][] = []
  for (const push of pushes) {
    const last = runs.at(-1)
    if (last === undefined || push.whole || last[0]?.whole === true) runs.push([push])
    else last.push(push)
  }
  return runs
}

/** The last value, `again`, is still to come. @param listener who wants to be told of room */
function callFor(jobs: readonly NewJob[], whole: boolean, now: number | null, listener: string | null) {
  const [first] = jobs
  if (whole || jobs.some(hasParents)) {
    const graph = graphValues(jobs)
    if (graph === undefined) {
      return { call: 'push_graph($1, true, $2, $5, $3, $4)', values: [jobsText(jobs), now, listener, whole] }
    }
    const call = 'push_graph_list($1, $2, $3, $4, $5, $6, $7, $8, true, $9, $12, $10, $11)'
    return { call, values: [...graph, now, listener, whole] }
  }
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
