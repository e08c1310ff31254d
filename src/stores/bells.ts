/**
 * Bells within a process, handed over in a microtask after the call that rang them, at most one of each kind and queue at a time: a burst
 * of pushes wakes a worker once. Ringing costs next to nothing while nobody listens.
 */
import type { Bell } from '../store.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

/** With more jobs than this, naming them costs more than a look by each process that waits. */
const MOST_IDS = 1_000

/**
 * Most names of queues that are kept: a client may claim from any number of names. A bell of a forgotten one is missed, but every process
 * that waits also looks by itself.
 */
const MAX_QUEUES = 10_000

/**
 * A job that is due sooner, in milliseconds, rings for work when it is scheduled: a claim then tells when. Later ones
 * are seen by the next sweep.
 */
export const SOON = DEFAULTS.store.soon

export type Kind = Bell['kind']
export const KINDS: readonly Kind[] = ['work', 'room', 'finished', 'cancelled']

export class Bells {
  readonly #listeners = new Set<(bell: Bell) => void>()
  /** Rung and not handed over yet: the ids of the jobs by queue; undefined: any job of the queue. */
  readonly #rung: Record<Kind, Map<string, string[] | undefined>> = {
    work: new Map(),
    room: new Map(),
    finished: new Map(),
    cancelled: new Map(),
  }
  #due = false
  readonly #concerns = new Set<string>()

  /** Queues that a worker here claims from, or in which somebody here waits for something. */
  get concerns(): ReadonlySet<string> {
    return this.#concerns
  }

  concern(queue: string): void {
    if (this.#concerns.size >= MAX_QUEUES) this.#concerns.clear()
    this.#concerns.add(queue)
  }

  /** Whatever was rung elsewhere until now went unheard. */
  ringAll(): void {
    for (const queue of this.#concerns) for (const kind of KINDS) this.ring(kind, queue)
  }

  listen(listener: (bell: Bell) => void): () => void {
    // A function of its own, so that one who listens twice also stops twice.
    const own = (bell: Bell) => listener(bell)
    this.#listeners.add(own)
    return () => this.#listeners.delete(own)
  }

  silence(): void {
    this.#listeners.clear()
  }

  /** @param id of the job that it rings for; undefined: any of the queue */
  ring(kind: Kind, queue: string, id?: string): void {
    if (this.#listeners.size === 0) return
    const rung = this.#rung[kind]
    const ids = rung.get(queue)
    if (id === undefined || (ids !== undefined && ids.length >= MOST_IDS)) rung.set(queue, undefined)
    else if (ids !== undefined) ids.push(id)
    else if (!rung.has(queue)) rung.set(queue, [id])
    if (this.#due) return
    this.#due = true
    queueMicrotask(() => this.#handOver())
  }

  #handOver(): void {
    this.#due = false
    const bells: Bell[] = []
    for (const queue of this.#rung.work.keys()) bells.push({ kind: 'work', queue })
    for (const queue of this.#rung.room.keys()) bells.push({ kind: 'room', queue })
    for (const kind of ['finished', 'cancelled'] as const) {
      for (const [queue, ids] of this.#rung[kind])
        bells.push(ids === undefined ? { kind, queue } : { kind, queue, ids })
    }
    for (const rung of Object.values(this.#rung)) rung.clear()
    for (const listener of [...this.#listeners]) for (const bell of bells) listener(bell)
  }
}
