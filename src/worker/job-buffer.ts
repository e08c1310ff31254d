/**
 * The claimed jobs of a worker that have not started, the most urgent first. A job that does not start within the window is taken out, and
 * all behind it: they would start before it otherwise.
 */

import { LinkedList } from '../values/collections/linked-list.ts'
import type { Attempt } from './attempt.ts'

export class JobBuffer extends LinkedList<Attempt> {
  readonly #window: number
  readonly #start: () => void
  readonly #late: (attempts: Attempt[]) => void
  #timer: NodeJS.Timeout | undefined

  /**
   * @param window in milliseconds
   * @param start starts what is ready, before the verdict: a timer may be late, or early and set again, as on Deno
   * @param late gets what was taken out, one attempt at least
   */
  constructor(window: number, start: () => void, late: (attempts: Attempt[]) => void) {
    super()
    this.#window = window
    this.#start = start
    this.#late = late
  }

  /** @param attempts of one claim, the most urgent first */
  add(attempts: readonly Attempt[]): void {
    const { last } = this
    const [first] = attempts
    for (const attempt of attempts) this.append(attempt)
    if (last === null || first === undefined || first.claimed.priority <= last.claimed.priority) return
    const sorted = this.clear().sort((a, b) => b.claimed.priority - a.claimed.priority)
    for (const attempt of sorted) this.append(attempt)
  }

  /** To be called once those that could start at once have started. */
  watch(): void {
    if (this.size === 0 || this.#timer !== undefined) return
    let oldest = Number.POSITIVE_INFINITY
    for (const { arrived } of this) oldest = Math.min(oldest, arrived)
    // Whole, as Node's own delays are: the first fraction would change the shape of every timer there is.
    const left = Math.ceil(Math.max(1, oldest + this.#window - performance.now()))
    // If the event loop was held up, what is ready to finish and to start comes before the verdict.
    this.#timer = setTimeout(() => setImmediate(() => this.#windowOver()), left).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #windowOver(): void {
    this.#timer = undefined
    this.#start()
    const before = performance.now() - this.#window
    const attempts = [...this]
    const first = attempts.findIndex(({ arrived }) => arrived <= before)
    const late = first === -1 ? [] : attempts.slice(first)
    for (const attempt of late) this.remove(attempt)
    if (late.length > 0) this.#late(late)
    this.watch()
  }
}
