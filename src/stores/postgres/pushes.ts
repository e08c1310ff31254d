/**
 * Pushes that are made in one tick go in one call, in the order in which they were made: on several connections they would
 * overtake each other, and places, keys and the last room in a queue would go to whichever came first by chance. One of all or none
 * has a call of its own, in its turn.
 */
import { Batcher } from '../../batch/batcher.ts'
import { type MillpondError, storeError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { areAlike } from '../jobs.ts'
import { hasParents } from '../lacking.ts'
import type { Calls } from './connection/calls.ts'
import { graphValues } from './graphs.ts'
import { isHeld, Lanes } from './held.ts'
import type { Notifier } from './notifier.ts'
import { jobsText, outcomeFrom, plainArray, textArray } from './wire.ts'

const UNLIMITED = Number.POSITIVE_INFINITY

type Send = (call: string, values: readonly unknown[]) => Promise<string[] | null>

interface Push {
  jobs: readonly NewJob[]
  /** All are stored, or none. */
  whole: boolean
}

export type Pushes = Batcher<Push, PushOutcome[]>

export function pushesOf(calls: Calls, notifier: Notifier): Pushes {
  const shared: Send = (call, values) => calls.shared(call, values)
  const half: Send = (call, values) => calls.shared(call, values, true)
  const lanes = new Lanes<Push, PushOutcome[]>(calls, namesOf, ({ jobs, whole }, lane, deadline) =>
    pushAll(jobs, whole, (call, values) => calls.alone(call, values, lane, deadline)),
  )
  const batcher = new Batcher<Push, PushOutcome[]>(
    async (pushes) => {
      const settled: (PushOutcome[] | Error)[] = []
      for (const together of runsOf(pushes)) settled.push(...(await pushTogether(together)))
      return settled
    },
    { items: UNLIMITED, bytes: UNLIMITED, calls: UNLIMITED },
  )
  return batcher

  async function pushTogether(pushes: readonly Push[]): Promise<(PushOutcome[] | Error)[]> {
    try {
      const jobs = pushes.flatMap((push) => push.jobs)
      const outcomes = pushes[0]?.whole === true ? await pushWhole(pushes[0]) : await pushEach(jobs)
      return pushes.map((push) => outcomes.splice(0, push.jobs.length))
    } catch (error) {
      return pushes.map(() => error as Error)
    }
  }

  async function pushWhole(push: Push): Promise<PushOutcome[]> {
    try {
      return await pushAll(push.jobs, true, shared)
    } catch (error) {
      if (!isHeld(error)) throw error
      const answer = lanes.send(push)
      return push.jobs.map((job, at) => later(job, answer, at))
    }
  }

  /** A job that waits for a stranger's transaction is answered with `later`; it holds up no other one. */
  async function pushEach(jobs: readonly NewJob[], send = shared): Promise<PushOutcome[]> {
    const outcomes = new Map<NewJob, PushOutcome>()
    const free = lanes.isEmpty ? jobs : parted(jobs, outcomes)
    for (const [at, outcome] of (await pushFree(free, send)).entries()) outcomes.set(free[at] as NewJob, outcome)
    return jobs.map((job) => outcomes.get(job) as PushOutcome)
  }

  /** Those of a lane go again, together, when what they wait for is over. @returns the others */
  function parted(jobs: readonly NewJob[], outcomes: Map<NewJob, PushOutcome>): NewJob[] {
    const waiting = new Map<Promise<void>, NewJob[]>()
    const free: NewJob[] = []
    for (const job of jobs) {
      const push = { jobs: [job], whole: false }
      const before = lanes.before(push)
      if (before === undefined && lanes.isSuspect(push)) outcomes.set(job, later(job, lanes.send(push), 0))
      else if (before === undefined) free.push(job)
      else waiting.set(before, [...(waiting.get(before) ?? []), job])
    }
    for (const [before, group] of waiting) {
      const answer = before.then(() => batcher.add({ jobs: group, whole: false }, 0))
      for (const [at, job] of group.entries()) outcomes.set(job, later(job, answer, at))
    }
    return free
  }

  async function pushFree(jobs: readonly NewJob[], send: Send): Promise<PushOutcome[]> {
    if (jobs.length === 0) return []
    try {
      return await pushAll(jobs, false, send)
    } catch (error) {
      if (!isHeld(error)) throw error
      if (jobs.length === 1) return [later(jobs[0] as NewJob, lanes.send({ jobs, whole: false }), 0)]
    }
    const middle = Math.ceil(jobs.length / 2)
    // One half after the other, so that they do not overtake each other.
    const first = await pushEach(jobs.slice(0, middle), half)
    const second = jobs.slice(middle)
    const failed = (error: unknown) =>
      second.map(({ id }): PushOutcome => ({ status: 'failed', id, error: failure(error) }))
    return [...first, ...(await pushEach(second, half).catch(failed))]
  }

  async function pushAll(jobs: readonly NewJob[], whole: boolean, send: Send): Promise<PushOutcome[]> {
    const { call, values } = callFor(jobs, whole, calls.now(), notifier.listener)
    const answer = await calls.repeatable<string[] | null>(
      [...values, false],
      () => [...values, true],
      (given) => send(call, given),
    )
    const outcomes = answer?.map(outcomeFrom) ?? jobs.map(({ id }): PushOutcome => ({ status: 'pushed', id }))
    const queuesWith = (status: PushOutcome['status']) =>
      new Set(jobs.flatMap(({ queue }, at) => (outcomes[at]?.status === status ? [queue] : [])))
    for (const queue of queuesWith('pushed')) notifier.bells.ring('work', queue)
    for (const queue of queuesWith('full')) notifier.noted('room', queue)
    return outcomes
  }
}

/** @param answer of a call in which the job has this place */
function later({ id }: NewJob, answer: Promise<PushOutcome[]>, at: number): PushOutcome {
  const settled = answer.then((outcomes) => settledOf(outcomes[at] as PushOutcome))
  settled.catch(() => {})
  return { status: 'later', id, later: settled }
}

/** What becomes of a job that is answered later, too. */
export async function settledOf(outcome: PushOutcome): Promise<PushOutcome> {
  try {
    return outcome.later === undefined ? outcome : await outcome.later
  } catch (error) {
    return { status: 'failed', id: outcome.id, error: failure(error) }
  }
}

const failure = (error: unknown): MillpondError => storeError(error, 'pushing')

/** What a push may wait for: its keys, or the room in its queues. */
function namesOf({ jobs }: Push): string[] {
  const keys = jobs.flatMap(({ queue, key }) => (key === null ? [] : [`${queue} ${key}`]))
  return keys.length > 0 ? keys : [...new Set(jobs.map(({ queue }) => queue))]
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
