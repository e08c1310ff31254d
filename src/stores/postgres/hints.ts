/**
 * Where this process's last claim from a queue ended, per priority. The next one begins there, instead of stepping over what was
 * claimed before it. Only a hint: jobs that committed late lie behind it, so every so often a claim begins at the marks.
 */
import type { PlacedJob } from './wire.ts'
import { plainArray } from './wire.ts'

/** Ms for which claims may go without a look behind. */
const LOOK_BEHIND = 100
const PRIORITIES = 10
/** Queues whose hints are kept: a client may claim from any number of names. */
const MOST = 10_000

interface Hint {
  /** For the priorities 9 … 0. */
  places: number[]
  /** `performance.now()` of the last claim from the marks. */
  looked: number
  /** Whether the last claim got all that it asked for: only then, or while jobs flow in, is the hint worth anything. */
  full: boolean
}

export class Hints {
  readonly #hints = new Map<string, Hint>()

  /** @param flowing more jobs are coming, however many the last claim got @returns null: begin at the marks */
  of(queue: string, flowing: boolean): string | null {
    const hint = this.#hints.get(queue)
    if (hint === undefined || !(hint.full || flowing) || performance.now() - hint.looked > LOOK_BEHIND) return null
    return plainArray(hint.places)
  }

  /** The queue is no more. */
  forget(queue: string): void {
    this.#hints.delete(queue)
  }

  claimed(queue: string, jobs: readonly PlacedJob[], full: boolean, hinted: boolean): void {
    let hint = this.#hints.get(queue)
    if (hint === undefined) {
      if (this.#hints.size >= MOST) this.#hints.clear()
      hint = { places: new Array<number>(PRIORITIES).fill(0), looked: 0, full }
      this.#hints.set(queue, hint)
    }
    hint.full = full
    if (!hinted) hint.looked = performance.now()
    for (const { seq, job } of jobs) {
      const at = PRIORITIES - 1 - job.priority
      if (seq > (hint.places[at] ?? 0)) hint.places[at] = seq
    }
  }
}
