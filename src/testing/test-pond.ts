/** A pond for tests: on memory, with a clock that one moves. */

import { internalsOf } from '../pond/internals.ts'
import type { PondCloseReport } from '../pond/millpond.ts'
import { Millpond } from '../pond/millpond.ts'
import type { Store } from '../store.ts'
import { type Forecast, openMovable } from '../stores/movable.ts'
import { LARGEST_PAYLOAD, MAX_PAYLOAD } from '../values/encoding/encoding.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { PondCloseOptions } from '../values/options/close-options.ts'
import { checkOptions, isDuration, isFunction, isInteger } from '../values/options/options.ts'
import { hasTag } from '../values/runtime/realms.ts'
import { checkQueueName } from '../values/settings/names.ts'
import { type Duration, LAST_MOMENT, milliseconds } from '../values/time/duration.ts'
import { Activity } from './activity.ts'
import { Course } from './course.ts'
import { Crashed } from './crashed.ts'
import { type PushedJob, Pushes } from './pushes.ts'
import { Rest } from './rest.ts'
import { TestClock } from './test-clock.ts'

export interface TestPondOptions {
  /** What the pond's clock shows at first; the present time unless given. */
  now?: Date | undefined
  /**
   * Called at each time that the clock is set to, before anything happens there: `(now) => vi.setSystemTime(now)` moves a faked `Date`
   * along. If it throws, `advance` or `drain` rejects with its error.
   */
  moved?: ((now: Date) => void) | undefined
  /**
   * How long `advance` waits, in real time, for handlers that are running while nothing else happens; 0 to 24 days, 200 ms unless given.
   * Then the clock moves on although they still run.
   */
  patience?: Duration | undefined
  /** Real time after which a moment without end is `NoRest`; 1 ms to 24 days, 4 s unless given: vitest and jest end a test after 5 s. */
  timeout?: Duration | undefined
  /** As in `Millpond.open`. */
  maxPayload?: number | undefined
}

export interface DrainOptions {
  /** How far the clock may be moved to start what is due later; 0 unless given: it stays. */
  within?: Duration | undefined
}

/** What happened meanwhile, over all queues, and what is left. */
export interface Ran {
  /** Jobs that are done. */
  done: number
  /** Failed attempts, those that a retry followed and those that left their job dead. */
  failed: number
  /** Jobs that are dead. */
  dead: number
  /** Jobs that wait or run now, and jobs that are due later. */
  waiting: number
  running: number
  scheduled: number
  /** Jobs that wait for other jobs. */
  blocked: number
}

/** A claim that `crash` dropped. */
export interface CrashedJob {
  queue: string
  id: string
  /** The attempt that ran, or was about to. */
  attempt: number
}

const PATIENCE = 200
const TIMEOUT = 4000

/**
 * Opens a pond on a memory store of its own, for a test. Its clock stands still until `advance` or `drain` moves it.
 * @throws InvalidOption
 */
export async function openTestPond(options: TestPondOptions = {}): Promise<TestPond> {
  const rules = {
    now: (value: unknown) => hasTag(value, 'Date') || 'a Date',
    moved: isFunction,
    patience: isDuration(0),
    timeout: isDuration(),
    maxPayload: isInteger(1, LARGEST_PAYLOAD),
  }
  const { now = new Date(), moved, patience, timeout, maxPayload } = checkOptions(options, rules, 'openTestPond')
  if (!Number.isFinite(now.getTime())) throw new MillpondError('InvalidOption', 'openTestPond: now is no valid date')
  const clock = new TestClock(now.getTime(), moved)
  const { store, forecast } = openMovable(clock.now)
  const activity = new Activity()
  const crashed = new Crashed()
  const pushes = new Pushes()
  const watched = activity.counted(pushes.recorded(crashed.deaf(store)))
  return new TestPond(watched, maxPayload ?? MAX_PAYLOAD, {
    ...{ clock, forecast, activity, crashed, pushes },
    patience: milliseconds(patience ?? PATIENCE, 'patience'),
    timeout: milliseconds(timeout ?? TIMEOUT, 'timeout'),
  })
}

interface TestParts {
  clock: TestClock
  forecast: Forecast
  activity: Activity
  crashed: Crashed
  pushes: Pushes
  patience: number
  timeout: number
}

/** A `Millpond` whose time a test moves. What it is given, such as `queue.work`, is the same as in production. */
export class TestPond extends Millpond {
  readonly #store: Store
  readonly #test: TestParts
  readonly #course: Course
  /** Calls that move the clock follow each other. */
  #last: Promise<unknown> = Promise.resolve()

  /** @internal */
  constructor(store: Store, maxPayload: number, test: TestParts) {
    super(store, maxPayload)
    this.#store = store
    this.#test = test
    const { clock, forecast, activity } = test
    const { workers, sweeper, pusher } = internalsOf(this)
    const rest = new Rest(
      activity,
      forecast,
      () => workers.all,
      () => pusher.flushed(),
    )
    this.#course = new Course({ clock, store, forecast, sweeper, workers: () => workers.all, rest })
  }

  /** What the clock shows. */
  get now(): Date {
    return new Date(this.#test.clock.now())
  }

  /**
   * Moves the clock on. On the way everything happens at its time: delayed jobs and retries start, schedules fire, rates and pauses let
   * jobs start, timeouts end attempts, leases of crashed workers end, and finished jobs are no longer kept. Resolves when nothing
   * happens any more. Call it in the test, not in a handler.
   * @param by 0 to 100 years
   * @throws InvalidOption, NoRest, Closed
   */
  advance(by: Duration): Promise<Ran> {
    return this.#inTurn(() => {
      const { clock, patience, timeout } = this.#test
      const until = Math.min(clock.now() + milliseconds(by, 'advance'), LAST_MOMENT)
      return this.#course.advance(until, patience, timeout)
    })
  }

  /**
   * Resolves when no job runs, and none waits that a worker could start; also children of jobs that have ended meanwhile. Jobs in queues
   * without a worker, and jobs that a limit holds back, are left. With `within` it moves the clock as long as that lets anything happen.
   * @throws InvalidOption, NoRest, Closed
   */
  drain(options: DrainOptions = {}): Promise<Ran> {
    return this.#inTurn(() => {
      const { within } = checkOptions(options, { within: (value, name) => milliseconds(value, name) >= 0 }, 'drain')
      const { clock, timeout } = this.#test
      const until = Math.min(clock.now() + milliseconds(within ?? 0, 'within'), LAST_MOMENT)
      return this.#course.drain(until, timeout)
    })
  }

  /**
   * The jobs that were pushed to the queue, in order, whatever became of them. Their type is the caller's word for it. Pushes that nobody
   * has awaited yet are among them.
   * @throws InvalidName
   */
  async pushed<Data = unknown>(queue: string): Promise<PushedJob<Data>[]> {
    const name = checkQueueName(queue)
    await internalsOf(this).pusher.flushed()
    return this.#test.pushes.of<Data>(name)
  }

  /**
   * As if the process of the workers were killed: nothing that they claimed reaches the store any more. Its leases end as the clock moves
   * on; then the jobs wait again, or are dead after their last attempt. Start new workers with `queue.work`, as a new process would. A
   * handler that runs goes on, since JavaScript cannot end it; its `signal` is aborted.
   * @returns the jobs whose claims were dropped
   */
  async crash(): Promise<CrashedJob[]> {
    const { crashed, forecast } = this.#test
    const workers = internalsOf(this).workers.all
    const ids = new Set(workers.map(({ id }) => id))
    const held = [...forecast.held(ids)]
    crashed.add(ids, held)
    await Promise.all(workers.map((worker) => worker.close({ timeout: 0 })))
    return held.map(({ queue, id, attempt }) => ({ queue, id, attempt }))
  }

  /** As of every pond, but running handlers have only the pond's `patience` to finish unless `timeout` is given. */
  override close(options: PondCloseOptions = {}): Promise<PondCloseReport> {
    return super.close({ timeout: this.#test.patience, ...options })
  }

  async #inTurn(run: () => Promise<void>): Promise<Ran> {
    const before = this.#last
    const ran = before.then(async () => {
      const began = await this.#sums()
      await run()
      return ranSince(began, await this.#sums())
    })
    this.#last = ran.catch(() => undefined)
    return ran
  }

  async #sums(): Promise<Ran> {
    const sums: Ran = { done: 0, failed: 0, dead: 0, waiting: 0, running: 0, scheduled: 0, blocked: 0 }
    for (const { totals, counts } of await this.#store.operations.stats({ minutes: 0 })) {
      for (const name of ['done', 'failed', 'dead'] as const) sums[name] += totals[name]
      for (const name of ['waiting', 'running', 'scheduled', 'blocked'] as const) sums[name] += counts[name]
    }
    return sums
  }
}

function ranSince(before: Ran, now: Ran): Ran {
  // A queue that was removed meanwhile takes its totals along.
  const since = (name: 'done' | 'failed' | 'dead') => Math.max(0, now[name] - before[name])
  return { ...now, done: since('done'), failed: since('failed'), dead: since('dead') }
}
