/** Sweeps the store while the service is open: workers over HTTP have no process of ours that would. */
import type { MillpondError } from '../errors.ts'
import { PondEmitter } from '../events.ts'
import { Keeper } from '../keeper.ts'
import type { Store } from '../store.ts'

export class Sweeper {
  readonly #keeper: Keeper

  constructor(store: Store, onTrouble: (error: MillpondError) => void) {
    const events = new PondEmitter()
    events.on('error', onTrouble)
    this.#keeper = new Keeper(store, events)
    this.#keeper.start()
  }

  /** A job is due in so many milliseconds. */
  due(ms: number): void {
    this.#keeper.due(ms)
  }

  stop(): Promise<void> {
    return this.#keeper.stop()
  }
}
