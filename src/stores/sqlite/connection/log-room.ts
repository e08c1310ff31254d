/**
 * Keeps the write-ahead log small on a small disk. SQLite would let it grow to 4,000 pages before it brings them into
 * the database, which on a small disk is never: the log fills the disk first, and then there is no room to empty it.
 */
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Database } from './database.ts'
import { columnOf, integer } from './values.ts'

/** In pages. SQLite's own default is 1,000; more of them make a checkpoint cheaper per commit. */
const MOST_PAGES = 4000
const LEAST_PAGES = 32
/** Of the free space. The database may have to grow by what is in the log. */
const SHARE = 1 / 4
/** What stays of the log after a burst, in bytes. */
const KEPT = 32 << 20
/** In ms. */
const INTERVAL = 1000

export class LogRoom {
  readonly #db: Database
  readonly #folder: string
  readonly #pageSize: number
  #pages = 0
  #nextLook = 0

  constructor(db: Database, path: string) {
    this.#db = db
    this.#folder = dirname(path)
    this.#pageSize = integer(columnOf(db.prepare('pragma page_size').get(), 'page_size'))
    this.adjust()
  }

  /** Outside of transactions. */
  adjust(): void {
    const now = performance.now()
    if (now < this.#nextLook) return
    this.#nextLook = now + INTERVAL
    const { bavail, bsize } = statfsSync(this.#folder)
    const pages = Math.floor((bavail * bsize * SHARE) / this.#pageSize)
    const wanted = Math.max(LEAST_PAGES, Math.min(MOST_PAGES, 2 ** Math.floor(Math.log2(pages + 1))))
    if (wanted === this.#pages) return
    this.#pages = wanted
    this.#db.exec(`pragma wal_autocheckpoint = ${wanted}`)
    this.#db.exec(`pragma journal_size_limit = ${Math.min(KEPT, 2 * wanted * this.#pageSize)}`)
  }

  /** For a full disk: brings the log into the database and frees its space. Not within a transaction. @returns false: it cannot now */
  make(): boolean {
    this.#nextLook = 0
    try {
      return columnOf(this.#db.prepare('pragma wal_checkpoint(truncate)').get(), 'busy') === 0
    } catch {
      // Even this needs space, which somebody must free. The caller throws the error of the full disk.
      return false
    }
  }
}
