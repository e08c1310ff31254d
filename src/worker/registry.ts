/**
 * Tells the store which workers this process has, so that people see who works, and `explain` whether anybody does. All go in one call:
 * when one starts or closes, and once in a while. Nothing but what people see depends on it, so an error is no trouble of its own.
 */
import { hostname } from 'node:os'
import { splitting } from '../batch/splitting.ts'
import type { Store } from '../store.ts'
import type { WorkerBeat } from '../values/operations/requests.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'

/** Milliseconds between heartbeats. The store forgets a worker after 60 s without one: contract/operations.md, "heartbeat". */
const EVERY = DEFAULTS.heartbeat.every
/** As long as the store does not know a queue: its first push may come at any time. */
const EVERY_UNKNOWN = DEFAULTS.heartbeat.unknownQueue
/** A caller over HTTP is known by its claims alone; without one for so long, it has left. */
const SILENCE = DEFAULTS.store.workerSilence
/** Callers over HTTP that are told of; they choose their names. */
const MAX_CALLERS = 1000

type Entry = Omit<WorkerBeat, 'host' | 'pid'>

export class WorkerRegistry {
  readonly #store: Store
  readonly #workers = new Map<string, () => Entry>()
  /** By worker and queue: callers over HTTP, and when they claimed last. */
  readonly #callers = new Map<string, { entry: Entry; at: number }>()
  #gone: string[] = []
  #telling: Promise<void> | undefined
  #again = false
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** @param entry what there is to tell now @returns removes it */
  add(id: string, entry: () => Entry): () => void {
    this.#workers.set(id, entry)
    this.#tell()
    return () => {
      this.#workers.delete(id)
      this.#gone.push(id)
      this.#tell()
    }
  }

  /** Somebody claimed over HTTP. */
  claimed(id: string, queue: string, slots: number): void {
    const key = `${queue} ${id}`
    const isNew = !this.#callers.has(key)
    if (isNew && this.#callers.size >= MAX_CALLERS) return
    this.#callers.set(key, { entry: { id, queue, slots, busy: 0 }, at: performance.now() })
    if (isNew) this.#tell()
  }

  /** Resolves when the store was told that the workers of this process are gone, or could not be told. */
  async close(): Promise<void> {
    this.#gone.push(...[...this.#callers.values()].map(({ entry }) => entry.id))
    this.#callers.clear()
    this.#tell()
    while (this.#telling !== undefined) await this.#telling
    clearTimeout(this.#timer)
  }

  #tell(): void {
    if (!this.#store.capabilities.workers) return
    if (this.#telling !== undefined) {
      this.#again = true
      return
    }
    clearTimeout(this.#timer)
    this.#again = false
    // At the end of the tick: several workers that start together share a call.
    this.#telling = Promise.resolve()
      .then(() => this.#beat())
      .catch(() => true)
      .then((isKnown) => {
        this.#telling = undefined
        if (this.#again) this.#tell()
        else if (this.#workers.size + this.#callers.size > 0) {
          this.#timer = setTimeout(() => this.#tell(), isKnown ? EVERY : EVERY_UNKNOWN).unref()
        }
      })
  }

  /** @returns whether the store knows all queues */
  async #beat(): Promise<boolean> {
    const now = performance.now()
    for (const [key, { at }] of this.#callers) if (now - at > SILENCE) this.#callers.delete(key)
    const entries = [
      ...[...this.#workers.values()].map((entry) => entry()),
      ...[...this.#callers.values()].map(({ entry }) => entry),
    ]
    const gone = this.#gone.splice(0)
    if (entries.length + gone.length === 0) return true
    const workers = entries.map((entry) => ({ ...entry, host: hostname(), pid: process.pid }))
    const beat = (some: readonly WorkerBeat[]) => this.#store.operations.heartbeat({ workers: some, gone })
    // An error counts as known: the next heartbeat is soon enough.
    return (await splitting(workers, beat, 'a heartbeat')).every(Boolean)
  }
}
