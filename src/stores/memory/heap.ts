/**
 * A binary heap whose entries know where they sit (`slot`), so that a cancelled job leaves at once.
 * Written out because the small heap packages on npm have no removal, which is the point here.
 */

/** What an entry carries of its heap. */
export interface HeapEntry {
  /** Position in the heap; -1: in none. */
  slot: number
}

export class Heap<Entry extends HeapEntry> {
  readonly #entries: Entry[] = []
  readonly #before: (a: Entry, b: Entry) => boolean

  constructor(before: (a: Entry, b: Entry) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#entries.length
  }

  get first(): Entry | undefined {
    return this.#entries[0]
  }

  /** In no particular order. */
  get all(): readonly Entry[] {
    return this.#entries
  }

  add(entry: Entry): void {
    this.#entries.push(entry)
    this.#rise(entry, this.#entries.length - 1)
  }

  remove(entry: Entry): void {
    const slot = entry.slot
    const last = this.#entries.pop()
    entry.slot = -1
    if (last === undefined || last === entry) return
    // The last one takes the free slot and may belong further up or further down.
    this.#rise(last, slot)
    this.#sink(last, last.slot)
  }

  #rise(entry: Entry, slot: number): void {
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1
      const parent = this.#entries[parentSlot]
      if (parent === undefined || !this.#before(entry, parent)) break
      this.#put(parent, slot)
      slot = parentSlot
    }
    this.#put(entry, slot)
  }

  #sink(entry: Entry, slot: number): void {
    for (;;) {
      let childSlot = 2 * slot + 1
      let child = this.#entries[childSlot]
      if (child === undefined) break
      const right = this.#entries[childSlot + 1]
      if (right !== undefined && this.#before(right, child)) {
        child = right
        childSlot++
      }
      if (!this.#before(child, entry)) break
      this.#put(child, slot)
      slot = childSlot
    }
    this.#put(entry, slot)
  }

  #put(entry: Entry, slot: number): void {
    this.#entries[slot] = entry
    entry.slot = slot
  }
}
