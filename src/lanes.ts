/**
 * Items that go in calls of their own by what they depend on: a lane each, grouped within (see `gather.ts`). So a call that fails or is slow is no
 * trouble of the other lanes'.
 */
import { Gather, type GatherLimits } from './gather.ts'

/** Lanes that are kept although nothing is in them. */
const KEPT = 100

export class Lanes<In, Out> {
  readonly #send: (items: In[]) => Promise<readonly (Out | Error)[]>
  readonly #limits: GatherLimits
  readonly #laneOf: (item: In) => string
  readonly #lanes = new Map<string, Gather<In, Out>>()

  /** @param send as for `Gather` @param laneOf names an item's lane */
  constructor(
    send: (items: In[]) => Promise<readonly (Out | Error)[]>,
    limits: GatherLimits,
    laneOf: (item: In) => string,
  ) {
    this.#send = send
    this.#limits = limits
    this.#laneOf = laneOf
  }

  /** Settles with the item's own outcome, or with the error of the call that carried it. */
  add(item: In, bytes: number): Promise<Out> {
    const name = this.#laneOf(item)
    let lane = this.#lanes.get(name)
    if (lane === undefined) {
      if (this.#lanes.size >= KEPT) this.#clear()
      lane = new Gather(this.#send, this.#limits)
      this.#lanes.set(name, lane)
    }
    return lane.add(item, bytes)
  }

  /** Resolves when everything added so far is settled. */
  async flushed(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.flushed()))
  }

  #clear(): void {
    for (const [name, lane] of this.#lanes) if (lane.waiting === 0 && lane.underWay === 0) this.#lanes.delete(name)
  }
}
