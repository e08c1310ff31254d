/**
 * Pushes that wait for room in a full queue. Bells make it quick, a try once a second makes it certain.
 * The version tells whether a bell rang between a push and the news that it found no room.
 */
import { MillpondError } from './errors.ts'

const POLL = 1000

export class Rooms {
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>()
  readonly #versions = new Map<string, number>()
  readonly #listen: () => void
  #watching = false
  /** Not unref'd: somebody waits to push. */
  #poll: NodeJS.Timeout | undefined
  #closed = false

  /** @param listen asks for bells, from now until the pond closes */
  constructor(listen: () => void) {
    this.#listen = listen
  }

  /** Some queue will wait for room. */
  watch(): void {
    if (this.#watching) return
    this.#watching = true
    this.#listen()
  }

  version(queue: string): number {
    return this.#versions.get(queue) ?? 0
  }

  /** Resolves when there may be room in the queue. @param seen its version before the push that found none @throws Closed */
  wait(queue: string, seen: number): Promise<void> {
    if (this.#closed) return Promise.reject(closed())
    if (this.version(queue) !== seen) return Promise.resolve()
    let entry = this.#waiting.get(queue)
    if (entry === undefined) {
      entry = Promise.withResolvers()
      this.#waiting.set(queue, entry)
    }
    this.#poll ??= setInterval(() => {
      for (const name of [...this.#waiting.keys()]) this.rung(name)
    }, POLL)
    return entry.promise
  }

  rung(queue: string): void {
    if (!this.#watching) return
    this.#versions.set(queue, this.version(queue) + 1)
    const entry = this.#waiting.get(queue)
    if (entry === undefined) return
    this.#waiting.delete(queue)
    this.#rest()
    entry.resolve()
  }

  close(): void {
    this.#closed = true
    for (const entry of this.#waiting.values()) entry.reject(closed())
    this.#waiting.clear()
    this.#rest()
  }

  #rest(): void {
    if (this.#waiting.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }
}

function closed(): MillpondError {
  return new MillpondError('Closed', 'the pond was closed while a push waited for room; the job was not stored')
}
