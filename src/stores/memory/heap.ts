/**
 * A binary heap whose entries know where they sit (`index`), so that a cancelled job leaves at once.
 * Written out because the small heap packages on npm have no removal, which is the point here.
 */

/** What an entry carries of its heap. */
export interface HeapEntry {
  /** Index in the heap; -1: in none. */
  index: number
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
    const index = entry.index
    const last = this.#entries.pop()
    entry.index = -1
    if (last === undefined || last === entry) return
    // The last one takes its index and may belong further up or further down.
    this.#rise(last, index)
    this.#sink(last, last.index)
  }

  #rise(entry: Entry, index: number): void {
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#entries[parentIndex]
      if (parent === undefined || !this.#before(entry, parent)) break
      this.#put(parent, index)
      index = parentIndex
    }
    this.#put(entry, index)
  }

  #sink(entry: Entry, index: number): void {
    for (;;) {
      let childIndex = 2 * index + 1
      let child = this.#entries[childIndex]
      if (child === undefined) break
      const right = this.#entries[childIndex + 1]
      if (right !== undefined && this.#before(right, child)) {
        child = right
        childIndex++
      }
      if (!this.#before(child, entry)) break
      this.#put(child, index)
      index = childIndex
    }
    this.#put(entry, index)
  }

  #put(entry: Entry, index: number): void {
    this.#entries[index] = entry
    entry.index = index
  }
}
