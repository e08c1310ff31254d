/** Sweeps the store while the service is open: workers over HTTP have no process of ours that would. */
import type { MillpondError } from '../errors.ts'
import { PondEmitter } from '../events.ts'
import { Keeper } from '../keeper.ts'
import type { Store } from '../store.ts'

export class Sweeper {
  readonly #keeper: Keeper
  #onSwept: (queues: number) => void = () => {}

  constructor(store: Store, onTrouble: (error: MillpondError) => void) {
    const events = new PondEmitter()
    events.on('error', onTrouble)
    const sweep = async (limit: number) => {
      const swept = await store.sweep(limit)
      this.#onSwept(swept.queues)
      return swept
    }
    this.#keeper = new Keeper({ sweep }, events)
    this.#keeper.start()
  }

  /** @param listener told with each sweep how many queues there are */
  onSwept(listener: (queues: number) => void): void {
    this.#onSwept = listener
  }

  /** A job is due in so many milliseconds. */
  due(ms: number): void {
    this.#keeper.due(ms)
  }

  stop(): Promise<void> {
    return this.#keeper.stop()
  }
}
