/** Options that both sides take, checked once, when the handler is made. */
import { type Duration, LONGEST_TIMER, milliseconds } from '../duration.ts'

/** A rule for a duration that becomes a timer; 0 only where it may be. */
export const isDuration = (name: string, least = 1) => {
  return (value: unknown) => milliseconds(value, name, least, LONGEST_TIMER) >= least
}

export function millisecondsOr(given: Duration | undefined, otherwise: Duration): number {
  return milliseconds(given ?? otherwise, 'duration')
}

/** How many of something go on at once, at the most. */
export class Slots {
  readonly #most: number
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** @returns a function that frees the slot, once; undefined if there is none */
  take(): (() => void) | undefined {
    if (this.#taken >= this.#most) return undefined
    this.#taken++
    let held = true
    return () => {
      if (held) this.#taken--
      held = false
    }
  }
}

/** Not `instanceof`: servers put classes of their own in the place of the global one, and a Response of `fetch` is none of theirs. */
export function isResponse(value: unknown): value is Response {
  return value instanceof Response || Object.prototype.toString.call(value) === '[object Response]'
}

/** Aborted by either: an answer that waits, or a stream, ends when the client is gone and when the pond begins to close. */
export function stoppedBy(signal: AbortSignal, stopping: AbortSignal | undefined): AbortSignal {
  return stopping === undefined ? signal : AbortSignal.any([signal, stopping])
}
