/** Shows how far a long run is: for a person one line, redrawn; in a pipe or a file a line now and then. */
import { grouped, lasting } from './figures.ts'
import type { Terminal } from './terminal.ts'

export interface Progress {
  done: number
  /** null: not known. */
  total: number | null
  /** Per second, of late. */
  rate: number
  /** Milliseconds that are left; null: not known. */
  left: number | null
}

/** Milliseconds between lines in a pipe. */
const LINE_EVERY = 10_000
/** Milliseconds between two drawings. */
const DRAWN_EVERY = 100
const BAR = 20
const WIDTH = 80

export class ProgressLine {
  readonly #terminal: Terminal
  readonly #what: string
  readonly #now: () => number
  #shownAt: number
  #isDrawn = false

  /** @param what is counted, such as `jobs moved` */
  constructor(terminal: Terminal, what: string, now: () => number = () => performance.now()) {
    this.#terminal = terminal
    this.#what = what
    this.#now = now
    // A short run needs no line in a file.
    this.#shownAt = terminal.isTTY?.err === true ? Number.NEGATIVE_INFINITY : now()
  }

  update(progress: Progress): void {
    const isTTY = this.#terminal.isTTY?.err === true
    const now = this.#now()
    if (now - this.#shownAt < (isTTY ? DRAWN_EVERY : LINE_EVERY)) return
    this.#shownAt = now
    const text = progressText(progress, this.#what, isTTY)
    // A line that is too long would wrap, and the next drawing would leave its first half behind.
    const shown = text.slice(0, (this.#terminal.columns?.() ?? WIDTH) - 1)
    this.#terminal.err(isTTY ? `\r\x1b[K${shown}` : `${text}\n`)
    this.#isDrawn = isTTY
  }

  /** Takes the line away, for other output. */
  clear(): void {
    if (this.#isDrawn) this.#terminal.err('\r\x1b[K')
    this.#isDrawn = false
    if (this.#terminal.isTTY?.err === true) this.#shownAt = Number.NEGATIVE_INFINITY
  }
}

export function progressText({ done, total, rate, left }: Progress, what: string, withBar: boolean): string {
  const share = total === null || total === 0 ? null : Math.min(1, done / total)
  const filled = Math.round((share ?? 0) * BAR)
  return [
    ...(withBar && share !== null ? [`[${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}]`] : []),
    ...(share === null ? [] : [`${Math.floor(share * 100)} %`]),
    `${grouped(done)}${total === null ? '' : ` of ${grouped(total)}`} ${what},`,
    `${grouped(Math.round(rate))}/s${left === null ? '' : `, ${lasting(left)} left`}`,
  ].join(' ')
}
