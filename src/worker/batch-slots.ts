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
import type { Slots } from './starter.ts'

/** In milliseconds. A batch starts this much before its jobs would be given back, as timers are early or late by a part of one. */
const MARGIN = 2

/** Checked and in milliseconds. */
export interface BatchSettings {
  max: number
  min: number
  within: number
  sameGroup: boolean
}

interface BatchSlotsHost extends SlotsHost {
  /** Milliseconds after which collected jobs are given back. */
  readonly window: number
  /** Whether a claim is under way. */
  claiming(): boolean
  /** `within` or the window is over for a job, so that a batch may start. */
  ripe(): void
}

export function batchSlots(host: BatchSlotsHost, settings: BatchSettings, run: (batch: Batch) => void): Slots {
  const { count, buffer } = host
  const { max, min, within, sameGroup } = settings
  let timer: NodeJS.Timeout | undefined
  let taken = 0
  const missing = () => (count - taken) * max - buffer.size

  /** The jobs of the batch that is to start now; undefined: none is. */
  function next(now: number): Attempt[] | undefined {
    const claiming = host.claiming()
    const enough = missing() > 0 ? min : 1
    const batches = sameGroup ? Map.groupBy(buffer, ({ claimed }) => claimed.group).values() : [[...buffer]]
    let look = Number.POSITIVE_INFINITY
    for (const jobs of batches) {
      const oldest = jobs.reduce((least, { arrived }) => Math.min(least, arrived), Number.POSITIVE_INFINITY)
      // Timers may be early by a part of a millisecond.
      const isRipe = jobs.length >= enough || now > oldest + within - 1
      const late = oldest + host.window - MARGIN
      if (jobs.length >= max || now > late || (isRipe && !claiming)) return jobs.slice(0, max)
      look = Math.min(look, claiming ? late : oldest + within)
    }
    timer = setTimeout(host.ripe, Math.max(1, Math.floor(look - now) + (claiming ? 1 : 0))).unref()
    return undefined
  }

  return {
    get taken() {
      return taken
    },
    get ready() {
      return buffer.size > 0 && taken < count
    },
    // If each batch is of one group, a claim is to give as many jobs of a group in one turn.
    perGroup: sameGroup ? max : 1,
    wanted: () => ({ limit: missing(), minPriority: 0 }),
    start(now) {
      clearTimeout(timer)
      const jobs = next(now)
      if (jobs === undefined) return false
      for (const attempt of jobs) buffer.remove(attempt)
      const held = jobs.filter((attempt) => host.begin(attempt, now))
      if (held.length === 0) return true
      taken++
      const batch = new Batch(held, () => taken--)
      for (const attempt of held) attempt.batch = batch
      run(batch)
      return true
    },
    close: () => clearTimeout(timer),
  }
}
