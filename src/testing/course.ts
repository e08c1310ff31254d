/**
 * Moves the clock of a test pond. It stops at each moment at which something becomes possible, does what is due there, and waits until
 * nothing happens any more:
 *
 *   rest ──► next moment, or the end ──► clock set, leases extended, timeouts, sweep, bells ──► rest ──► …
 *
 * Whatever a store does by time belongs into its `Forecast` and its `sweep`; nothing else here needs to know of it.
 */

import { hostname } from 'node:os'
import type { Store } from '../store.ts'
import type { Forecast } from '../stores/movable.ts'
import type { Attempt } from '../worker/attempt.ts'
import type { Sweeper } from '../worker/sweeper.ts'
import type { Worker } from '../worker/worker.ts'
import type { Rest } from './rest.ts'
import type { TestClock } from './test-clock.ts'

export interface CourseParts {
  clock: TestClock
  store: Store
  forecast: Forecast
  sweeper: Sweeper
  workers: () => readonly Worker[]
  rest: Rest
}

export class Course {
  readonly #parts: CourseParts
  /** When, by the clock, each attempt with a timeout began. */
  readonly #began = new WeakMap<Attempt, number>()

  constructor(parts: CourseParts) {
    this.#parts = parts
  }

  /** To the end, even if nothing happens. */
  async advance(until: number, patience: number, timeout: number): Promise<void> {
    const { clock } = this.#parts
    const terms = { patience, timeout }
    await this.#begin(terms)
    for (let next = this.#next(); next !== null && next <= until; next = this.#next()) await this.#moveTo(next, terms)
    if (clock.now() < until) await this.#moveTo(until, terms)
  }

  /** As far as something happens, and not beyond `until`. */
  async drain(until: number, timeout: number): Promise<void> {
    const terms = { patience: null, timeout }
    await this.#begin(terms)
    for (let next = this.#next(); next !== null && next <= until; next = this.#next()) await this.#moveTo(next, terms)
  }

  /** Schedules that were declared just now have no next time before a sweep. */
  async #begin(terms: Parameters<Rest['reached']>[0]): Promise<void> {
    await this.#rest(terms)
    await this.#parts.sweeper.sweepAll()
    await this.#rest(terms)
  }

  #next(): number | null {
    const { clock, forecast, workers } = this.#parts
    const now = clock.now()
    const ends = [...this.#deadlines()].map(({ at }) => at).filter((at) => at > now)
    const queues = new Set(workers().map(({ queue }) => queue))
    const next = Math.min(forecast.next(queues, this.#ids()) ?? Number.POSITIVE_INFINITY, ...ends)
    return next === Number.POSITIVE_INFINITY ? null : next
  }

  async #moveTo(time: number, terms: Parameters<Rest['reached']>[0]): Promise<void> {
    const { clock, sweeper, forecast } = this.#parts
    clock.move(time)
    // The memory store does its work within the call, so no other sweep comes between.
    const told = [...this.#extendAll(), this.#beat()]
    for (const { at, attempt } of [...this.#deadlines()]) if (at <= time) attempt.deadline?.pass()
    await Promise.all(told)
    await sweeper.sweepAll()
    forecast.ring()
    await this.#rest(terms)
  }

  async #rest(terms: Parameters<Rest['reached']>[0]): Promise<void> {
    await this.#parts.rest.reached(terms)
    const now = this.#parts.clock.now()
    for (const attempt of this.#timed()) if (!this.#began.has(attempt)) this.#began.set(attempt, now)
  }

  *#timed(): Generator<Attempt> {
    for (const worker of this.#parts.workers()) {
      for (const attempt of worker.attempts) if (attempt.deadline !== undefined) yield attempt
    }
  }

  *#deadlines(): Generator<{ at: number; attempt: Attempt }> {
    for (const attempt of this.#timed()) {
      const began = this.#began.get(attempt)
      if (began !== undefined) yield { at: began + (attempt.claimed.timeout ?? 0), attempt }
    }
  }

  /** As the workers would have done on the way. */
  #extendAll(): Promise<unknown>[] {
    const { store, forecast } = this.#parts
    return [...forecast.held(this.#ids())].map(({ queue, id, fence }) =>
      store.operations.extend({ queue, lease: null, items: [{ id, fence, progress: null }] }),
    )
  }

  #beat(): Promise<unknown> {
    const workers = this.#parts.workers().map(({ id, queue, load, lanes }) => {
      return { id, queue, slots: load.slots, busy: load.running, lanes, host: hostname(), pid: process.pid }
    })
    return this.#parts.store.operations.heartbeat({ workers, gone: [] })
  }

  #ids(): Set<string> {
    return new Set(this.#parts.workers().map(({ id }) => id))
  }
}
