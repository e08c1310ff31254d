/**
 * Sweeps the store while this process has workers or serves them: due jobs become waiting on time, lost claims come back, schedules
 * fire, beside the sweeps, and finished jobs past their `keep` time go. Every process does so; nothing is elected, and nothing
 * hangs on one of them.
 */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { Swept } from '../values/operations/swept.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { Scheduler } from './scheduler.ts'

/** A lost lease is noticed this late at the most, in milliseconds. */
const INTERVAL = DEFAULTS.sweep.every
/** Jobs of a sweep. */
const MAX_JOBS_PER_SWEEP = DEFAULTS.sweep.limit

export class Sweeper {
  readonly #store: Store
  readonly #onSwept: (swept: Swept) => void
  readonly #onTrouble: (error: MillpondError) => void
  readonly #scheduler: Scheduler
  #timer: NodeJS.Timeout | undefined
  /** `performance.now()` of the planned sweep; Infinity: none. */
  #at = Number.POSITIVE_INFINITY
  #sweeping: Promise<void> | undefined
  /** Never rejects. */
  #firing: Promise<number> | undefined
  /** The same, also when it is over. */
  #lastFired: Promise<number> | undefined
  /** A sweep fell due while one was under way. */
  #again = false
  #open = false

  constructor(store: Store, onSwept: (swept: Swept) => void, onTrouble: (error: MillpondError) => void) {
    this.#store = store
    this.#onSwept = onSwept
    this.#onTrouble = onTrouble
    this.#scheduler = new Scheduler(store, onTrouble)
  }

  start(): void {
    if (this.#open) return
    this.#open = true
    this.due(0)
  }

  /** Something is due in so many milliseconds. */
  due(ms: number): void {
    if (!this.#open) return
    const at = performance.now() + ms
    if (at >= this.#at) return
    clearTimeout(this.#timer)
    this.#at = at
    this.#timer = setTimeout(() => this.#run(), Math.min(ms, INTERVAL)).unref()
  }

  /** Sweeps now, until nothing more is due. Also while stopped. */
  async sweepAll(): Promise<void> {
    await this.#firing
    for (let next = 0; next === 0; ) {
      this.#lastFired = undefined
      next = await this.#sweep()
      next = Math.min(next, (await this.#lastFired) ?? INTERVAL)
    }
  }

  /** Resolves when no sweep is under way. */
  async stop(): Promise<void> {
    this.#open = false
    clearTimeout(this.#timer)
    this.#at = Number.POSITIVE_INFINITY
    await this.#sweeping
    await this.#firing
  }

  #run(): void {
    this.#at = Number.POSITIVE_INFINITY
    if (this.#sweeping !== undefined) {
      this.#again = true
      return
    }
    this.#again = false
    this.#sweeping = this.#sweep().then((next) => {
      this.#sweeping = undefined
      this.due(this.#again ? 0 : next)
    })
  }

  /** Milliseconds until the next sweep. */
  async #sweep(): Promise<number> {
    try {
      const swept = await this.#store.operations.sweep({ limit: MAX_JOBS_PER_SWEEP })
      this.#onSwept(swept)
      if (swept.schedules !== null) this.#fire(swept.schedules)
      if (swept.more) return 0
      return Math.min(INTERVAL, Math.max(1, swept.nextDue ?? INTERVAL))
    } catch (error) {
      if (error instanceof MillpondError && error.code !== 'Closed') this.#onTrouble(error)
      return INTERVAL
    }
  }

  /** Fires what is due, unless that is under way: what is slow or held there keeps no sweep waiting. */
  #fire(schedules: NonNullable<Swept['schedules']>): void {
    this.#firing ??= this.#scheduler
      .fire(schedules)
      .catch((error: unknown) => {
        if (error instanceof MillpondError && error.code !== 'Closed') this.#onTrouble(error)
        return INTERVAL
      })
      .then((wait) => {
        this.#firing = undefined
        if (wait < INTERVAL) this.due(wait === 0 ? 0 : Math.max(1, wait))
        return wait
      })
    this.#lastFired = this.#firing
  }
}
