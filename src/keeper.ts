/**
 * Sweeps the store while this process has workers: due jobs become waiting on time, lost claims come back, what was kept
 * long enough goes. Every process may do so; nothing is elected, and nothing hangs on one of them.
 */
import { MillpondError } from './errors.ts'
import type { PondEmitter } from './events.ts'
import type { Store } from './store.ts'

/** A lost lease is noticed this late at the most, in milliseconds. */
const EVERY = 1000
const LIMIT = 1000

export class Keeper {
  readonly #store: Pick<Store, 'sweep'>
  readonly #events: PondEmitter
  #timer: NodeJS.Timeout | undefined
  /** `performance.now()` of the planned sweep; Infinity: none. */
  #at = Number.POSITIVE_INFINITY
  #sweeping: Promise<void> | undefined
  /** A sweep fell due while one was under way. */
  #again = false
  #open = false

  constructor(store: Pick<Store, 'sweep'>, events: PondEmitter) {
    this.#store = store
    this.#events = events
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
    this.#timer = setTimeout(() => this.#run(), Math.min(ms, EVERY)).unref()
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
    this.#sweeping = this.#sweep().then((next) => {
      this.#sweeping = undefined
      const again = this.#again
      this.#again = false
      this.due(again ? 0 : next)
    })
  }

  /** Milliseconds until the next sweep. */
  async #sweep(): Promise<number> {
    try {
      const { lost, more, nextDue } = await this.#store.sweep(LIMIT)
      for (const event of lost) this.#events.emit('lost', event)
      if (more) return 0
      return nextDue === null ? EVERY : Math.min(EVERY, Math.max(1, nextDue))
    } catch (error) {
      if (error instanceof MillpondError && error.code !== 'Closed') this.#events.trouble(error)
      return EVERY
    }
  }
}
