/**
 * Bells are handed over in a microtask after the call that rang them, at most one of each kind and queue at a time: a burst
 * of pushes wakes a worker once. Ringing costs next to nothing while nobody listens.
 */

import type { Bell } from '../store.ts'

/** Beyond this, naming the jobs costs more than letting whoever waits look for itself. */
const MOST_IDS = 1_000

export class Bells {
  readonly #listeners = new Set<(bell: Bell) => void>()
  /** Rung and not handed over yet. */
  readonly #work = new Set<string>()
  readonly #room = new Set<string>()
  /** The same, with the ids of the jobs, by queue. */
  readonly #finished = new Map<string, string[]>()
  readonly #cancelled = new Map<string, string[]>()
  #due = false

  listen(listener: (bell: Bell) => void): () => void {
    // A function of its own, so that one who listens twice also stops twice.
    const own = (bell: Bell) => listener(bell)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  silence(): void {
    this.#listeners.clear()
  }

  work(queue: string): void {
    this.#ring(this.#work, queue)
  }

  room(queue: string): void {
    this.#ring(this.#room, queue)
  }

  finished(queue: string, id: string): void {
    this.#ringFor(this.#finished, queue, id)
  }

  cancelled(queue: string, id: string): void {
    this.#ringFor(this.#cancelled, queue, id)
  }

  #ring(bells: Set<string>, queue: string): void {
    if (this.#listeners.size === 0) return
    bells.add(queue)
    this.#schedule()
  }

  #ringFor(bells: Map<string, string[]>, queue: string, id: string): void {
    if (this.#listeners.size === 0) return
    const ids = bells.get(queue)
    if (ids === undefined) bells.set(queue, [id])
    else if (ids.length <= MOST_IDS) ids.push(id)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#due) return
    this.#due = true
    queueMicrotask(() => this.#handOver())
  }

  #handOver(): void {
    const bells: Bell[] = []
    for (const queue of this.#work) bells.push({ kind: 'work', queue })
    for (const queue of this.#room) bells.push({ kind: 'room', queue })
    for (const [queue, ids] of this.#finished) bells.push(withIds('finished', queue, ids))
    for (const [queue, ids] of this.#cancelled) bells.push(withIds('cancelled', queue, ids))
    this.#work.clear()
    this.#room.clear()
    this.#finished.clear()
    this.#cancelled.clear()
    this.#due = false
    for (const listener of [...this.#listeners]) for (const bell of bells) listener(bell)
  }
}

function withIds(kind: 'finished' | 'cancelled', queue: string, ids: string[]): Bell {
  return ids.length > MOST_IDS ? { kind, queue } : { kind, queue, ids }
}
