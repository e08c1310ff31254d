/**
 * All jobs of a store by id.
 *
 * Ids that rise, as those of one process do, need no hash table: their jobs stand on shelves in the order of their ids, and
 * a search halves its way there. What a push asks for, "is this id new?", is then one comparison with the greatest id
 * known, and taking a job away is one write. A hash table of many ids costs several cache misses for either, which
 * was a fifth of a drain.
 *
 * Jobs with other ids go to maps; so do the last few of a shelf that is nearly empty, so that a job scheduled for next
 * week does not keep a shelf for itself. There are 16 maps, by the last digit of the id, which is random in a UUIDv7: a
 * single one stops the process for a quarter of a second when it grows at a million entries, and can hold no more than 16.7 million.
 */

import type { Job } from './job.ts'
import { lastWhere, Shelf } from './shelf.ts'

/** Jobs on a shelf, and how few must be left for it to be cleared. */
const LENGTH = 512
const FEW = 32

export class Jobs {
  readonly #maps: readonly Map<string, Job>[] = Array.from({ length: 16 }, () => new Map<string, Job>())
  /** In the order of their ids; only the last is added to. */
  #shelves: Shelf<Job>[] = []
  #last = new Shelf<Job>()
  #greatest = ''

  get(id: string): Job | undefined {
    if (id > this.#greatest) return undefined
    return this.#shelves[this.#shelfOf(id)]?.get(id) ?? this.#map(id)?.get(id)
  }

  /** Its id must not be known. */
  add(job: Job): void {
    if (job.id <= this.#greatest) {
      this.#map(job.id)?.set(job.id, job)
      return
    }
    this.#greatest = job.id
    if (this.#shelves.length === 0 || this.#last.length === LENGTH) this.#addShelf()
    this.#last.add(job)
  }

  remove(job: Job): void {
    const { shelf } = job
    if (shelf === null) {
      this.#map(job.id)?.delete(job.id)
      return
    }
    shelf.remove(job)
    if (shelf.count < FEW && shelf !== this.#last) this.#clear(shelf)
  }

  clear(): void {
    for (const map of this.#maps) map.clear()
    this.#shelves = []
    this.#last = new Shelf()
    this.#greatest = ''
  }

  #addShelf(): void {
    const full = this.#last
    this.#last = new Shelf()
    this.#shelves.push(this.#last)
    if (full.length > 0 && full.count < FEW) this.#clear(full)
  }

  #clear(shelf: Shelf<Job>): void {
    this.#shelves.splice(this.#shelfOf(shelf.firstId), 1)
    for (const job of shelf.clear()) this.#map(job.id)?.set(job.id, job)
  }

  #shelfOf(id: string): number {
    return lastWhere(this.#shelves.length, (at) => (this.#shelves[at]?.firstId ?? '') <= id)
  }

  #map(id: string): Map<string, Job> | undefined {
    const code = id.charCodeAt(id.length - 1)
    // The value of a hexadecimal digit; of any other character, something else that is always the same.
    return this.#maps[((code >> 6) * 9 + code) & 15]
  }
}
