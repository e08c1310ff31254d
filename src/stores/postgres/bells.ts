/** Hands bells over at the end of the microtask in which they rang, at most one of each kind and queue: a burst wakes a worker once. */
import type { Bell } from '../../store.ts'

/** Beyond this, naming the jobs costs more than letting whoever waits look for himself. */
const MOST_IDS = 1000

interface Rung {
  kind: Bell['kind']
  queue: string
  /** undefined: any job of the queue. */
  ids: string[] | undefined
}

export class Bells {
  readonly #listeners = new Set<(bell: Bell) => void>()
  #rung = new Map<string, Rung>()

  listen(listener: (bell: Bell) => void): () => void {
    // A function of its own, so that one who listens twice also stops twice.
    const own = (bell: Bell) => listener(bell)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  silence(): void {
    this.#listeners.clear()
  }

  ring(kind: Bell['kind'], queue: string, ids?: readonly string[]): void {
    if (this.#listeners.size === 0) return
    const name = `${kind}:${queue}`
    const rung = this.#rung.get(name)
    if (rung === undefined) {
      if (this.#rung.size === 0) queueMicrotask(() => this.#handOver())
      this.#rung.set(name, { kind, queue, ids: ids === undefined ? undefined : [...ids] })
    } else if (ids === undefined || rung.ids === undefined || rung.ids.length + ids.length > MOST_IDS)
      rung.ids = undefined
    else rung.ids.push(...ids)
  }

  #handOver(): void {
    const rung = [...this.#rung.values()]
    this.#rung = new Map()
    for (const { kind, queue, ids } of rung) {
      const bell: Bell =
        (kind === 'finished' || kind === 'cancelled') && ids !== undefined ? { kind, queue, ids } : { kind, queue }
      for (const listener of [...this.#listeners]) listener(bell)
    }
  }
}
