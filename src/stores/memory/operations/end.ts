import type { OfQueue } from '../../../store.ts'
import type {
  Completion,
  FailOutcome,
  Failure,
  HoldOutcome,
  Release,
  ReleaseOutcome,
} from '../../../values/jobs/records.ts'
import { delayAfter } from '../../../values/settings/backoff.ts'
import { SOON } from '../../bells.ts'
import { copyEncoded } from '../../jobs.ts'
import { copyError } from '../job.ts'
import type { MemoryState } from '../state.ts'
import { park } from './journal.ts'

export function complete(state: MemoryState, { queue: name, items }: OfQueue<Completion>): HoldOutcome[] {
  const now = state.now()
  const queue = state.queues.get(name)
  return items.map((completion) => {
    const job = state.held(name, completion)
    if (job === undefined || queue === undefined) return 'stale'
    if (completion.log) job.addLog(completion.log)
    job.result = copyEncoded(completion.result)
    queue.finish(job, 'done', now)
    state.ended(queue, job)
    return 'ok'
  })
}

export function fail(state: MemoryState, { queue: name, items }: OfQueue<Failure>): FailOutcome[] {
  const now = state.now()
  const queue = state.queues.get(name)
  return items.map((failure) => {
    const job = state.held(name, failure)
    if (job === undefined || queue === undefined) return 'stale'
    if (failure.log) job.addLog(failure.log)
    job.error = copyError(failure.error)
    queue.totals.failed++
    if (failure.delay === null || job.attempt >= job.attempts) {
      queue.finish(job, 'dead', now)
      state.ended(queue, job)
      return 'dead'
    }
    const { backoff } = queue.settings
    const delay = failure.delay === 'backoff' ? delayAfter(backoff, job.attempt, Math.random()) : failure.delay
    job.dueAt = now + Math.max(0, delay)
    if (delay > 0) queue.schedule(job)
    else queue.wait(job)
    if (delay < SOON || queue.hasLimits) state.bells.ring('work', name)
    return 'retry'
  })
}

export function release(state: MemoryState, { queue: name, items }: OfQueue<Release>): ReleaseOutcome[] {
  const now = state.now()
  const queue = state.queues.get(name)
  return items.map((given) => {
    const job = state.held(name, given)
    if (job === undefined || queue === undefined) return 'stale'
    if (given.log) job.addLog(given.log)
    if (given.park) return park(state, queue, job, given.park)
    if (given.pause) queue.pause(job, now, given.pause)
    else queue.giveBackStart(job, now)
    // As if the claim had never been; its fence alone stays used up.
    job.worker = null
    job.attempt--
    queue.wait(job)
    queue.totals.released++
    state.bells.ring('work', name)
    return 'ok'
  })
}
