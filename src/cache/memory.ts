/** The layer in the process: bounded by bytes; what was not asked for longest goes first. */
import type { Entry } from './entry.ts'

export class Memory {
  /** In the order of the last use: a Map keeps the order in which its keys came. */
  readonly #entries = new Map<string, Entry>()
  readonly #limit: number
  readonly #onGone: (entry: Entry) => void
  #bytes = 0

  /** @param onGone told of each entry that leaves */
  constructor(limit: number, onGone: (entry: Entry) => void) {
    this.#limit = limit
    this.#onGone = onGone
  }

  get size(): number {
    return this.#entries.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Makes it the last to go. */
  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry
  }

  /** Without a use. */
  peek(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  put(entry: Entry): void {
    this.delete(entry.key)
    this.#entries.set(entry.key, entry)
    this.#bytes += entry.weight
    this.#shrink()
  }

  /** A form was made of it, or given up. An entry that was dropped meanwhile weighs nothing here. */
  grow(entry: Entry, bytes: number): void {
    entry.weight += bytes
    if (this.#entries.get(entry.key) !== entry) return
    this.#bytes += bytes
    this.#shrink()
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#bytes -= entry.weight
    this.#onGone(entry)
  }

  entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.delete(key)
  }

  #shrink(): void {
    for (const key of this.#entries.keys()) {
      if (this.#bytes <= this.#limit) return
      this.delete(key)
    }
  }
}
