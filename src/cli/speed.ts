/** How fast a long run goes, and how long it still takes, for its progress bar. */
import type { Progress } from './progress.ts'

export class Speed {
  readonly #now: () => number
  readonly #began: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#began = now()
  }

  of(done: number, total: number | null): Progress {
    const ms = Math.max(1, this.#now() - this.#began)
    const rate = (done / ms) * 1000
    const left = total === null || rate === 0 ? null : (Math.max(0, total - done) / rate) * 1000
    return { done, total, rate, left }
  }
}
