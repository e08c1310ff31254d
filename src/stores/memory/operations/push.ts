import type { Input } from '../../../store.ts'
import { latestDue } from '../../../values/jobs/once.ts'
import type { NewJob, PushOutcome } from '../../../values/jobs/records.ts'
import { SOON } from '../../bells.ts'
import { standsFor } from '../../jobs.ts'
import { isFinal, Job, ORIGIN } from '../job.ts'
import { FOLLOWS, meet } from '../meeting.ts'
import { NEVER_DUE } from '../once.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'
import { refusals } from '../whole.ts'
import { updateOne } from './update.ts'

export function push(state: MemoryState, { jobs, whole }: Input<'push'>): PushOutcome[] | Promise<PushOutcome[]> {
  const outcomes = (whole && refusals(state, jobs)) || pushNow(state, jobs)
  return state.tick.mayEnd()?.then(() => outcomes) ?? outcomes
}

export function pushNow(state: MemoryState, jobs: readonly NewJob[]): PushOutcome[] {
  const now = state.now()
  const outcomes: PushOutcome[] = []
  /** Of jobs that were not stored under their ids. */
  const others = new Map<string, string>()
  let queue: MemoryQueue | undefined
  for (const job of jobs) {
    if (queue?.name !== job.queue) queue = state.findOrCreate(job.queue)
    const outcome = pushOne(state, queue, job, now, others)
    if (standsFor(outcome, job)) others.set(job.id, outcome.id)
    outcomes.push(outcome)
  }
  return outcomes
}

function pushOne(
  state: MemoryState,
  queue: MemoryQueue,
  job: NewJob,
  now: number,
  others: ReadonlyMap<string, string>,
): PushOutcome {
  const { id, key, once, after, partOf } = job
  if (job.fresh !== true && state.jobs.get(id) !== undefined) return { status: 'existing', id }
  const met = key === null ? undefined : meet(queue, job, key, now)
  if (met instanceof Job) {
    const runAt = ORIGIN + dueOf(job, met.pushedAt, now)
    updateOne(state, { id: met.id, data: job.data, runAt }, now)
    return { status: 'replaced', id: met.id }
  }
  if (met !== undefined && met !== FOLLOWS) return met
  if (queue.isFull) return { status: 'full', id }
  const parent = after === undefined && partOf === undefined ? undefined : orphaned(state, job, others)
  if (parent !== undefined) return { status: 'orphan', id, parent }
  const dueAt = dueOf(job, now, now)
  const stored = new Job(job, queue.settings, state.places++, now, dueAt)
  stored.fence = state.removedFence
  if (met === FOLLOWS) {
    stored.state = 'scheduled'
    stored.followDue = dueAt
    stored.dueAt = NEVER_DUE
  }
  if (key !== null && once?.unique !== undefined) stored.unique = { ...once.unique }
  queue.totals.pushed++
  const waits = after !== undefined && after.length > 0
  const failed = waits ? state.graph.wait(stored, mapped(job, others)) : undefined
  state.jobs.add(stored)
  queue.add(stored)
  if (partOf !== undefined) state.graph.partOf(stored, others.get(partOf) ?? partOf)
  state.graph.stored(queue, stored, failed)
  if (stored.state !== 'blocked' && stored.dueAt < now + SOON) state.bells.ring('work', queue.name)
  return { status: 'pushed', id }
}

const mapped = ({ after = [], onDead }: NewJob, others: ReadonlyMap<string, string>) => ({
  after: others.size === 0 ? after : after.map((id) => others.get(id) ?? id),
  onDead,
})

/** The job that it needs and that is not there. */
function orphaned(
  state: MemoryState,
  { after, partOf }: NewJob,
  others: ReadonlyMap<string, string>,
): string | undefined {
  const stateOf = (id: string) => state.jobs.get(others.get(id) ?? id)?.state
  const parent = after?.find((id) => stateOf(id) === undefined)
  if (parent !== undefined || partOf === undefined) return parent
  const its = stateOf(partOf)
  return its === undefined || isFinal(its) ? partOf : undefined
}

/** @param pushedAt of the job that gets this due time */
function dueOf({ delay, runAt, once }: NewJob, pushedAt: number, now: number): number {
  const dueAt = runAt === null ? now + delay : runAt - ORIGIN
  return Math.max(now, once === undefined ? dueAt : Math.min(dueAt, latestDue(once, pushedAt)))
}
