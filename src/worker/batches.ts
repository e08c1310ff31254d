/**
 * The batches of a worker: collects its claimed jobs, and starts them together.
 *
 *   collected ──a slot is free, and: as many jobs as `min`, or `within` is over, or no more can be collected──► running
 *       └─ worker's window over, and no slot free: given back
 *
 * Claims are made for free slots only. While one is under way it may fill the next batch, so only a batch of `max` jobs starts, or one that
 * would be given back in a moment.
 */

import type { LinkedList } from '../values/linked-list.ts'
import type { Attempt } from './attempt.ts'
import { Batch } from './batch.ts'
import type { BatchRunner } from './batch-runner.ts'
import type { Wanted } from './claim-loop.ts'

/** A batch starts this much before its jobs would be given back, in milliseconds: timers are whole milliseconds, and may be early by a part of one. */
const MARGIN = 2

/** Checked and in milliseconds. */
export interface BatchSettings {
  max: number
  min: number
  within: number
  sameGroup: boolean
}

export class Batches {
  readonly #settings: BatchSettings
  readonly #slots: number
  readonly #window: number
  readonly #runner: BatchRunner
  readonly #ripe: () => void
  #timer: NodeJS.Timeout | undefined
  #running = 0

  /**
   * @param slots most batches that run at once
   * @param window milliseconds after which collected jobs are given back
   * @param ripe called when `within` or the window is over for a job, so that `take` may have a batch
   */
  constructor(settings: BatchSettings, slots: number, window: number, runner: BatchRunner, ripe: () => void) {
    this.#settings = settings
    this.#slots = slots
    this.#window = window
    this.#runner = runner
    this.#ripe = ripe
  }

  /** Most jobs of a group that a claim is to give in one turn: those of a batch, if each batch is of one group. */
  get perGroup(): number {
    return this.#settings.sameGroup ? this.#settings.max : 1
  }

  get running(): number {
    return this.#running
  }

  wanted(collected: number): Wanted {
    return { limit: (this.#slots - this.#running) * this.#settings.max - collected, minPriority: 0 }
  }

  /**
   * Takes the jobs of the batch that is to start now; undefined: none is.
   * @param collected the most urgent first
   * @param claiming whether a claim is under way
   */
  take(collected: LinkedList<Attempt>, now: number, claiming: boolean): Attempt[] | undefined {
    clearTimeout(this.#timer)
    if (this.#running >= this.#slots || collected.size === 0) return undefined
    const { max, min, within, sameGroup } = this.#settings
    const enough = this.wanted(collected.size).limit > 0 ? min : 1
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
    this.#timer = setTimeout(this.#ripe, Math.max(1, Math.floor(next - now) + (claiming ? 1 : 0))).unref()
    return undefined
  }

  start(attempts: readonly Attempt[]): void {
    if (attempts.length === 0) return
    this.#running++
    const batch = new Batch(attempts, () => this.#running--)
    for (const attempt of attempts) attempt.batch = batch
    void this.#runner.run(batch)
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}
