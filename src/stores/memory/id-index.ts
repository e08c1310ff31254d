/**
 * Entries by id, in many small maps. One large map would stop the process for a quarter of a second when it grows past a million
 * entries, could hold 16.7 million, and would cost several cache misses for each entry that leaves.
 *
 * The maps are in the order of ids. Each has the ids from its first one up to the first one of the next map; the first
 * map also has all ids before. Ids that rise, as those of one process do, fill one map after another. An empty map is
 * removed, and its ids belong to a neighbour.
 */

/** What an entry carries of its index. */
export interface Indexed<Entry extends Indexed<Entry>> {
  readonly id: string
  /** null: it was never in an index. */
  range: IdRange<Entry> | null
}

export class IdRange<Entry extends Indexed<Entry>> {
  readonly first: string
  readonly entries = new Map<string, Entry>()

  constructor(first: string) {
    this.first = first
  }
}

/** Rising ids that one map takes. Other ids may make it larger. */
const MAX_RISING = 512

export class IdIndex<Entry extends Indexed<Entry>> {
  #last = new IdRange<Entry>('')
  #ranges = [this.#last]
  #greatest = ''

  get(id: string): Entry | undefined {
    return this.#rangeOf(id).entries.get(id)
  }

  /** Its id must not be known. */
  add(entry: Entry): void {
    const { id } = entry
    entry.range = id > this.#greatest ? this.#rangeAfterAll(id) : this.#rangeOf(id)
    entry.range.entries.set(id, entry)
  }

  remove({ id, range }: Entry): void {
    range?.entries.delete(id)
    if (range?.entries.size === 0 && range !== this.#last) this.#ranges.splice(this.#indexOf(id), 1)
  }

  clear(): void {
    this.#last = new IdRange<Entry>('')
    this.#ranges = [this.#last]
    this.#greatest = ''
  }

  #rangeAfterAll(id: string): IdRange<Entry> {
    this.#greatest = id
    if (this.#last.entries.size < MAX_RISING) return this.#last
    this.#last = new IdRange(id)
    this.#ranges.push(this.#last)
    return this.#last
  }

  #rangeOf(id: string): IdRange<Entry> {
    return this.#ranges[this.#indexOf(id)] ?? this.#last
  }

  /** Of the last range that begins at this id or before it. */
  #indexOf(id: string): number {
    let low = 0
    let high = this.#ranges.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#ranges[middle]?.first ?? '') <= id) low = middle
      else high = middle
    }
    return low
  }
}
