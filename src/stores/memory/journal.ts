/** The journal of a job: contract/steps.md. */
import type { EntriesPage, Entry, NewEntry } from '../../values/jobs/records.ts'
import { entryBytes, isSignal } from '../../values/jobs/step-names.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { copyEncoded } from '../jobs.ts'

const { entries: MAX_ENTRIES, bytes: MAX_BYTES, page: PAGE } = DEFAULTS.steps

export class Journal {
  /** By name, in the order in which they came. */
  readonly #entries = new Map<string, Entry>()
  #last = 0
  #bytes = 0
  signals = 0

  get size(): number {
    return this.#entries.size
  }

  /** Adds those whose names are new. @returns false: it would outgrow a bound, and nothing was added */
  add(given: readonly NewEntry[]): boolean {
    const added = new Map<string, NewEntry>()
    let bytes = this.#bytes
    for (const entry of given) {
      if (this.#entries.has(entry.name) || added.has(entry.name)) continue
      added.set(entry.name, entry)
      bytes += entryBytes(entry)
    }
    if (added.size > 0 && (this.#entries.size + added.size > MAX_ENTRIES || bytes > MAX_BYTES)) return false
    for (const { name, meta, body } of added.values()) {
      this.#entries.set(name, { n: ++this.#last, name, meta, body: copyEncoded(body) })
      if (isSignal(name)) this.signals++
    }
    this.#bytes = bytes
    return true
  }

  /** Takes away what the worker added from a number on. */
  forget(from: number): void {
    for (const entry of [...this.#entries.values()]) {
      if (entry.n < from || isSignal(entry.name)) continue
      this.#entries.delete(entry.name)
      this.#bytes -= entryBytes(entry)
    }
  }

  /** @param room bytes; one entry is given at least, if `mayExceed` */
  page(after: number, room: number, mayExceed: boolean): EntriesPage & { bytes: number } {
    const entries: Entry[] = []
    let bytes = 0
    for (const entry of this.#entries.values()) {
      if (entry.n <= after) continue
      const more = entryBytes(entry)
      if (bytes + more > room && (entries.length > 0 || !mayExceed)) return { entries, bytes, more: true }
      entries.push({ ...entry, body: copyEncoded(entry.body) })
      bytes += more
    }
    return { entries, bytes, more: false }
  }
}

/** Pages of several journals, `PAGE` bytes together. @param journals undefined: the job has none; null: there is no such job */
export function pagesOf(
  journals: readonly ({ journal: Journal | null; after: number } | null)[],
): (EntriesPage | null)[] {
  let room = PAGE
  return journals.map((given) => {
    if (given === null) return null
    const { entries, more, bytes } = given.journal?.page(given.after, room, room === PAGE) ?? NO_PAGE
    room -= bytes
    return { entries, more }
  })
}

const NO_PAGE = { entries: [], more: false, bytes: 0 }
