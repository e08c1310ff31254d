/**
 * One of each kind of thing that comes and goes with every job, kept for good.
 *
 * When a full collection finds no instance of a class, V8 forgets the shape that its instances had, and all code that was compiled for it. A
 * service goes on collecting while its queue is empty, so the surge that follows would begin in slow code, just when there is most to do: a drain of
 * 100,000 jobs in memory right after a full collection took 1.4 times as long. `test/unit/shapes.test.ts` shows that these are the shapes at work. Endings other than completions are rare enough to do without.
 */
import { Attempt } from './attempt.ts'
import { Job } from './job.ts'
import { completed } from './settler.ts'
import type { ClaimedJob } from './store.ts'

/** Its times are such as real ones: V8 tells small integers from other numbers. */
const claimed: ClaimedJob = {
  id: '',
  fence: 1,
  attempt: 1,
  attempts: 1,
  priority: 0,
  group: null,
  key: null,
  timeout: null,
  trace: null,
  pushedAt: Date.now(),
  dueAt: Date.now(),
  data: { encoding: 'json', body: 'null' },
}
const attempt = new Attempt(
  claimed,
  { now: claimed.dueAt, at: performance.now(), heldUntil: performance.now() },
  { maxPayload: 0, reportSoon() {} },
)

export const SHAPES = { attempt, job: new Job('', claimed, null), ending: completed(attempt, null, null) } as const
