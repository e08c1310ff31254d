/** A batcher for each key: a call that fails or is slow does not hold up items with another key. */
import { Batcher, type BatcherLimits } from './batcher.ts'

/** Batchers that are kept although they are idle. */
const MAX_IDLE = 100

export class KeyedBatcher<In, Out> {
  readonly #send: (items: In[]) => Promise<readonly (Out | Error)[]>
  readonly #limits: BatcherLimits
  readonly #batchers = new Map<string, Batcher<In, Out>>()

  /** @param send as for `Batcher` */
  constructor(send: (items: In[]) => Promise<readonly (Out | Error)[]>, limits: BatcherLimits) {
    this.#send = send
    this.#limits = limits
  }

  /** @param size the number of items that this one counts as */
  add(key: string, item: In, bytes: number, size = 1): Promise<Out> {
    let batcher = this.#batchers.get(key)
    if (batcher === undefined) {
      if (this.#batchers.size >= MAX_IDLE) this.#removeIdle()
      batcher = new Batcher(this.#send, this.#limits)
      this.#batchers.set(key, batcher)
    }
    return batcher.add(item, bytes, undefined, size)
  }

  async flushed(): Promise<void> {
    await Promise.all([...this.#batchers.values()].map((batcher) => batcher.flushed()))
  }

  #removeIdle(): void {
    for (const [key, { waiting, underWay }] of this.#batchers) {
      if (waiting === 0 && underWay === 0) this.#batchers.delete(key)
    }
  }
}
