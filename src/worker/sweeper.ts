/**
 * Sweeps the store while this process has workers or serves them: due jobs become waiting on time, lost claims come back, schedules
 * fire, and finished jobs past their `keep` time go. Every process does so; nothing is elected, and nothing hangs on one of them.
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
    while ((await this.#sweep()) === 0);
  }

  /** Resolves when no sweep is under way. */
  async stop(): Promise<void> {
    this.#open = false
    clearTimeout(this.#timer)
    this.#at = Number.POSITIVE_INFINITY
    await this.#sweeping
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
      const wait = swept.schedules === null ? INTERVAL : await this.#scheduler.fire(swept.schedules)
      if (swept.more || wait === 0) return 0
      return Math.min(INTERVAL, Math.max(1, Math.min(wait, swept.nextDue ?? INTERVAL)))
    } catch (error) {
      if (error instanceof MillpondError && error.code !== 'Closed') this.#onTrouble(error)
      return INTERVAL
    }
  }
}
