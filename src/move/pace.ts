/** How fast a move goes, and how long it will take. */

/** In ms: the rate is that of the last so many. */
const WINDOW = 10_000

export interface MoveProgress {
  /** Jobs that are at the target by now. */
  done: number
  /** With those that are still at the source. */
  total: number
  /** Jobs per second, of the last 10 s. */
  rate: number
  /** Milliseconds until all are moved, at this rate; null: not known yet. */
  left: number | null
}

export class Pace {
  readonly #now: () => number
  readonly #points: { at: number; done: number }[]

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#points = [{ at: now(), done: 0 }]
  }

  /** @param remaining at the source */
  progress(done: number, remaining: number): MoveProgress {
    const at = this.#now()
    const points = this.#points
    points.push({ at, done })
    // One point older than the window stays, so that the rate is that of a whole window.
    while (points[1] !== undefined && points[1].at <= at - WINDOW) points.shift()
    const [first = { at, done }] = points
    const rate = at > first.at ? ((done - first.done) / (at - first.at)) * 1000 : 0
    return { done, total: done + remaining, rate, left: rate > 0 ? (remaining / rate) * 1000 : null }
  }
}
