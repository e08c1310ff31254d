/** Slots for one job each. Which jobs are claimed for them, and ahead, is for `lanes.ts` or `prefetch.ts`. */

import type { LinkedList } from '../values/linked-list.ts'
import type { Attempt } from './attempt.ts'
import type { Lanes } from './lanes.ts'
import type { Prefetch } from './prefetch.ts'
import type { Slots, Wanted } from './starter.ts'

/** What the slots of a worker need of it. */
export interface SlotsHost {
  /** The most urgent first. */
  readonly buffer: LinkedList<Attempt>
  /** In the order of their start. */
  readonly running: LinkedList<Attempt>
  /** The attempt gets a slot. @returns false: its lease may be over, so it was given back */
  begin(attempt: Attempt, now: number): boolean
}

export class SingleSlots implements Slots {
  readonly #host: SlotsHost
  readonly #count: number
  readonly #lanes: Lanes | undefined
  readonly #prefetch: Prefetch
  readonly #run: (attempt: Attempt) => void

  constructor(
    host: SlotsHost,
    count: number,
    lanes: Lanes | undefined,
    prefetch: Prefetch,
    run: (attempt: Attempt) => void,
  ) {
    this.#host = host
    this.#count = count
    this.#lanes = lanes
    this.#prefetch = prefetch
    this.#run = run
  }

  get taken(): number {
    return this.#host.running.size
  }

  get ready(): boolean {
    return this.#host.buffer.size > 0 && this.#host.running.size < this.#count
  }

  wanted(): Wanted {
    const { buffer, running } = this.#host
    if (this.#lanes !== undefined) return { ...this.#lanes.wanted([...running, ...buffer]), perGroup: 1 }
    return { limit: this.#prefetch.wanted(this.#count, running, buffer.size), minPriority: 0, perGroup: 1 }
  }

  start(now: number): boolean {
    const attempt = this.#host.buffer.first
    if (attempt === null) return false
    this.#host.buffer.remove(attempt)
    if (this.#host.begin(attempt, now)) this.#run(attempt)
    return true
  }

  close(): void {}
}
