/** Slots for one job each. How many jobs are claimed for them, and ahead, is for `lanes.ts` or `prefetch.ts`. */

import type { LinkedList } from '../values/collections/linked-list.ts'
import type { Attempt } from './attempt.ts'
import type { Slots, Wanted } from './starter.ts'

/** What the slots of a worker need of it. */
export interface SlotsHost {
  /** How many slots there are. */
  readonly count: number
  /** The most urgent first. */
  readonly buffer: LinkedList<Attempt>
  /** In the order of their start. */
  readonly running: LinkedList<Attempt>
  /** The attempt gets a slot. @returns false: its lease may be over, so it was given back */
  begin(attempt: Attempt, now: number): boolean
}

export function singleSlots(
  { count, buffer, running, begin }: SlotsHost,
  wanted: () => Wanted,
  run: (attempt: Attempt) => void,
): Slots {
  return {
    get taken() {
      return running.size
    },
    get ready() {
      return buffer.size > 0 && running.size < count
    },
    perGroup: 1,
    wanted,
    start(now) {
      const attempt = buffer.first
      if (attempt === null) return false
      buffer.remove(attempt)
      if (begin(attempt, now)) run(attempt)
      return true
    },
    close() {},
  }
}
