import type { Input, NewJob, PushOutcome } from '../../../store.ts'
import { latestDue } from '../../../values/once.ts'
import { SOON } from '../../bells.ts'
import { Job, ORIGIN } from '../job.ts'
import { NEVER_DUE } from '../once.ts'
import type { MemoryQueue } from '../queue.ts'
import type { MemoryState } from '../state.ts'
import { updateOne } from './update.ts'

export function push(state: MemoryState, { jobs }: Input<'push'>): PushOutcome[] | Promise<PushOutcome[]> {
  const outcomes = pushNow(state, jobs)
  return state.tick.mayEnd()?.then(() => outcomes) ?? outcomes
}

export function pushNow(state: MemoryState, jobs: readonly NewJob[]): PushOutcome[] {
  const now = state.now()
  const outcomes: PushOutcome[] = []
  let queue: MemoryQueue | undefined
  for (const job of jobs) {
    if (queue?.name !== job.queue) queue = state.findOrCreate(job.queue)
    outcomes.push(pushOne(state, queue, job, now))
  }
  return outcomes
}

function pushOne(state: MemoryState, queue: MemoryQueue, job: NewJob, now: number): PushOutcome {
  const { id, key, once } = job
  if (job.fresh !== true && state.jobs.get(id) !== undefined) return { status: 'existing', id }
  const met = key === null ? undefined : meet(state, queue, job, key, now)
  if (met !== undefined && met !== FOLLOWS) return met
  if (queue.isFull) return { status: 'full', id }
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
  state.jobs.add(stored)
  queue.add(stored)
  if (stored.dueAt < now + SOON) state.bells.ring('work', queue.name)
  return { status: 'pushed', id }
}

/** @param pushedAt of the job that gets this due time */
function dueOf({ delay, runAt, once }: NewJob, pushedAt: number, now: number): number {
  const dueAt = runAt === null ? now + delay : runAt - ORIGIN
  return Math.max(now, once === undefined ? dueAt : Math.min(dueAt, latestDue(once, pushedAt)))
}

const FOLLOWS = 'follows'

/** What a push finds under its key. Undefined: nothing. */
function meet(
  state: MemoryState,
  queue: MemoryQueue,
  job: NewJob,
  key: string,
  now: number,
): PushOutcome | typeof FOLLOWS | undefined {
  const { replace = false, follow = false } = job.once ?? {}
  const holder = queue.keys.get(key)
  if (holder === undefined) {
    const id = queue.once.remembered(key, now)
    return id === undefined ? undefined : { status: 'existing', id }
  }
  const follower = replace || follow ? queue.once.follower(key) : undefined
  const replaced = follower ?? (replace && holder.state !== 'running' ? holder : undefined)
  if (replaced !== undefined) {
    const runAt = ORIGIN + dueOf(job, replaced.pushedAt, now)
    updateOne(state, { id: replaced.id, data: job.data, runAt }, now)
    return { status: 'replaced', id: replaced.id }
  }
  return follow && holder.state === 'running' ? FOLLOWS : { status: 'existing', id: holder.id }
}
