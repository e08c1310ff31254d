/**
 * Keeps slots of a worker for urgent jobs.
 *
 * Jobs with a priority below a lane's `minPriority` may hold the slots that this lane and the lanes above it do not reserve:
 *
 *   most = concurrency − Σ reserve of the lanes with this minPriority or a higher one
 *
 * Jobs at or above it may hold every slot. So a claim from a priority on is limited by the lanes above that priority.
 */

import { MillpondError } from '../values/errors/errors.ts'
import type { Lane } from '../values/operations/requests.ts'
import type { Attempt } from './attempt.ts'
import type { Wanted } from './starter.ts'

/** Jobs of a priority lower than `below` hold `most` slots at the most. */
interface Bound {
  below: number
  most: number
}

const ABOVE_ALL = 10

export class Lanes {
  /** The highest first. */
  readonly all: readonly Lane[]
  /** The highest first. */
  readonly #bounds: readonly Bound[]

  /** @throws InvalidOption */
  constructor(lanes: readonly Lane[], concurrency: number) {
    const bounds: Bound[] = [{ below: ABOVE_ALL, most: concurrency }]
    let most = concurrency
    let last = ABOVE_ALL
    this.all = lanes
      .map(({ minPriority, reserve }) => ({ minPriority, reserve }))
      .sort((a, b) => b.minPriority - a.minPriority)
    for (const { minPriority, reserve } of this.all) {
      if (minPriority === last) throw invalid(`two of them have the minPriority ${minPriority}`)
      most -= reserve
      last = minPriority
      bounds.push({ below: minPriority, most })
    }
    const reserved = `they reserve ${concurrency - most} of ${concurrency} slots`
    if (most < 1) throw invalid(`${reserved}, and one at least must be left for other jobs`)
    this.#bounds = bounds
  }

  /** From the lowest priority that has a free slot. @param held the jobs that run or are about to */
  wanted(held: Iterable<Attempt>): Wanted {
    const counts = new Array<number>(ABOVE_ALL).fill(0)
    for (const { claimed } of held) counts[claimed.priority] = (counts[claimed.priority] ?? 0) + 1
    const wanted = { limit: 0, minPriority: 0 }
    let free = Number.POSITIVE_INFINITY
    for (const [index, { below, most }] of this.#bounds.entries()) {
      const holding = counts.slice(0, below).reduce((sum, count) => sum + count, 0)
      free = Math.min(free, most - holding)
      if (free <= 0) break
      wanted.limit = free
      wanted.minPriority = this.#bounds[index + 1]?.below ?? 0
    }
    return wanted
  }
}

function invalid(why: string): MillpondError {
  return new MillpondError('InvalidOption', `work: lanes: ${why}`)
}
