/**
 * Slots for a batch each: collects the worker's claimed jobs, and starts them together.
 *
 *   collected ──a slot is free, and: as many jobs as `min`, or `within` is over, or no more can be collected──► running
 *       └─ worker's window over, and no slot free: given back
 *
 * Claims are made for free slots only. While one is under way it may fill the next batch, so only a batch of `max` jobs starts, or one that
 * would be given back in a moment.
 */

import type { Attempt } from './attempt.ts'
import { Batch } from './batch.ts'
import type { SlotsHost } from './single-slots.ts'
import type { Slots, Wanted } from './starter.ts'

/** A batch starts this much before its jobs would be given back, in milliseconds: timers are whole milliseconds, and may be early by a part of one. */
const MARGIN = 2

/** Checked and in milliseconds. */
export interface BatchSettings {
  max: number
  min: number
  within: number
  sameGroup: boolean
}

interface BatchSlotsHost extends SlotsHost {
  /** Whether a claim is under way. */
  claiming(): boolean
  /** `within` or the window is over for a job, so that a batch may start. */
  ripe(): void
}

export class BatchSlots implements Slots {
  readonly #host: BatchSlotsHost
  readonly #settings: BatchSettings
  readonly #count: number
  readonly #window: number
  readonly #run: (batch: Batch) => void
  #timer: NodeJS.Timeout | undefined
  #taken = 0

  /**
   * @param count most batches that run at once
   * @param window milliseconds after which collected jobs are given back
   */
  constructor(
    host: BatchSlotsHost,
    settings: BatchSettings,
    count: number,
    window: number,
    run: (batch: Batch) => void,
  ) {
    this.#host = host
    this.#settings = settings
    this.#count = count
    this.#window = window
    this.#run = run
  }

  get taken(): number {
    return this.#taken
  }

  get ready(): boolean {
    return this.#host.buffer.size > 0 && this.#taken < this.#count
  }

  wanted(): Wanted {
    const { max, sameGroup } = this.#settings
    const limit = (this.#count - this.#taken) * max - this.#host.buffer.size
    // Most jobs of a group in a row: those of a batch, if each batch is of one group.
    return { limit, minPriority: 0, perGroup: sameGroup ? max : 1 }
  }

  start(now: number): boolean {
    clearTimeout(this.#timer)
    const jobs = this.#take(now)
    if (jobs === undefined) return false
    const held = jobs.filter((attempt) => this.#host.begin(attempt, now))
    if (held.length === 0) return true
    this.#taken++
    const batch = new Batch(held, () => this.#taken--)
    for (const attempt of held) attempt.batch = batch
    this.#run(batch)
    return true
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Takes the jobs of the batch that is to start now; undefined: none is. */
  #take(now: number): Attempt[] | undefined {
    const collected = this.#host.buffer
    const claiming = this.#host.claiming()
    const { max, min, within, sameGroup } = this.#settings
    const enough = this.wanted().limit > 0 ? min : 1
    const batches = sameGroup ? Map.groupBy(collected, ({ claimed }) => claimed.group).values() : [[...collected]]
    let next = Number.POSITIVE_INFINITY
    for (const jobs of batches) {
      const oldest = jobs.reduce((least, { arrived }) => Math.min(least, arrived), Number.POSITIVE_INFINITY)
      // Timers may be early by a part of a millisecond.
      const isRipe = jobs.length >= enough || now > oldest + within - 1
      const late = oldest + this.#window - MARGIN
      if (jobs.length >= max || now > late || (isRipe && !claiming)) {
        const taken = jobs.slice(0, max)
        for (const attempt of taken) collected.remove(attempt)
        return taken
      }
      next = Math.min(next, claiming ? late : oldest + within)
    }
    this.#timer = setTimeout(this.#host.ripe, Math.max(1, Math.floor(next - now) + (claiming ? 1 : 0))).unref()
    return undefined
  }
}
