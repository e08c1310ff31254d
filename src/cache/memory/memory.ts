/**
 * The layer in the process, bounded by bytes. A hit only marks the entry. When room is needed, an entry that was marked since the last time
 * is unmarked and goes to the end (second chance, also known as clock). That is near enough to what was not asked for longest, and a hit
 * costs a third of moving the entry each time.
 *
 * Our own, since entries grow where they are as further forms are made of them, which `lru-cache` has no way to say.
 */
import type { Entry } from './entry.ts'

/** Most entries that are passed over for one that goes: all at once would take tens of milliseconds. */
const MAX_SKIPPED = 64

export class Memory {
  /** In the order in which they came or were passed over. */
  readonly #entries = new Map<string, Entry>()
  readonly #limit: number
  readonly #onGone: (entry: Entry) => void
  /** Of all entries. */
  bytes = 0

  /** @param limit bytes @param onGone called with each entry that leaves */
  constructor(limit: number, onGone: (entry: Entry) => void) {
    this.#limit = limit
    this.#onGone = onGone
  }

  get size(): number {
    return this.#entries.size
  }

  /** Marks the entry as used. */
  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.used = true
    return entry
  }

  peek(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  /** An entry that is too large for the limit leaves at once, and pushes no other one out. */
  put(entry: Entry): void {
    this.delete(entry.key)
    this.#entries.set(entry.key, entry)
    this.bytes += entry.weight
    this.#makeRoom(entry)
  }

  /** A form was made of it, or given up. An entry that has left weighs nothing here. */
  grow(entry: Entry, bytes: number): void {
    entry.weight += bytes
    if (this.#entries.get(entry.key) !== entry) return
    this.bytes += bytes
    this.#makeRoom(entry)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.bytes -= entry.weight
    this.#onGone(entry)
  }

  entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  clear(): void {
    for (const key of [...this.#entries.keys()]) this.delete(key)
  }

  /** Removes entries until the limit holds. @param grown is removed only if it alone exceeds the limit */
  #makeRoom(grown: Entry): void {
    if (grown.weight > this.#limit) this.delete(grown.key)
    let skipped = 0
    // What is passed over comes again at the end of this very loop, unmarked.
    for (const [key, entry] of this.#entries) {
      if (this.bytes <= this.#limit) return
      if (entry === grown) continue
      if (entry.used && skipped++ < MAX_SKIPPED) {
        entry.used = false
        this.#entries.delete(key)
        this.#entries.set(key, entry)
      } else {
        skipped = 0
        this.delete(key)
      }
    }
  }
}
