/**
 * The layer in the process, bounded by bytes. A hit only marks the entry; when room is needed, what was marked since the last time is
 * passed over once and goes to the end (second chance, also known as clock): near enough to what was not asked for longest, and a hit
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

  /** A use. */
  get(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.used = true
    return entry
  }

  /** Without a use. */
  peek(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  /** One that is too large for all that may be kept leaves at once, and no other one for it. */
  put(entry: Entry): void {
    this.delete(entry.key)
    this.#entries.set(entry.key, entry)
    this.#bytes += entry.weight
    this.#bound(entry)
  }

  /** A form was made of it, or given up. An entry that was dropped meanwhile weighs nothing here. */
  grow(entry: Entry, bytes: number): void {
    entry.weight += bytes
    if (this.#entries.get(entry.key) !== entry) return
    this.#bytes += bytes
    this.#bound(entry)
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

  /** @param grown what has become heavier; if it fits, it stays */
  #bound(grown: Entry): void {
    if (grown.weight > this.#limit) this.delete(grown.key)
    let passed = 0
    // What is passed over comes again at the end of this very loop, unmarked.
    for (const [key, entry] of this.#entries) {
      if (this.#bytes <= this.#limit) return
      if (entry === grown) continue
      if (entry.used && passed < MAX_SKIPPED) {
        passed++
        entry.used = false
        this.#entries.delete(key)
        this.#entries.set(key, entry)
      } else {
        passed = 0
        this.delete(key)
      }
    }
  }
}
