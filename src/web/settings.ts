/** Options that both sides take, checked once, when the handler is made. */
import { type Duration, LONGEST_TIMER, milliseconds } from '../values/duration.ts'

/** A rule for a duration that becomes a timer; 0 only where it may be. */
export const isDuration = (name: string, least = 1) => {
  return (value: unknown) => milliseconds(value, name, least, LONGEST_TIMER) >= least
}

export function millisecondsOr(given: Duration | undefined, otherwise: Duration): number {
  return milliseconds(given ?? otherwise, 'duration')
}

/** How many of something go on at once, at the most, in all and for one client. */
export class Slots {
  readonly #most: number
  readonly #mostPerClient: number
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(most: number, mostPerClient = most) {
    this.#most = most
    this.#mostPerClient = mostPerClient
  }

  /**
   * @param client as `clientOf` names it; undefined where it is not known, and then only the number in all counts
   * @returns a function that frees the slot, once; undefined if there is none
   */
  take(client?: string): (() => void) | undefined {
    const own = client === undefined ? 0 : (this.#byClient.get(client) ?? 0)
    if (this.#taken >= this.#most || own >= this.#mostPerClient) return undefined
    this.#add(client, 1)
    let held = true
    return () => {
      if (held) this.#add(client, -1)
      held = false
    }
  }

  #add(client: string | undefined, change: 1 | -1): void {
    this.#taken += change
    if (client === undefined) return
    const own = (this.#byClient.get(client) ?? 0) + change
    if (own === 0) this.#byClient.delete(client)
    else this.#byClient.set(client, own)
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
