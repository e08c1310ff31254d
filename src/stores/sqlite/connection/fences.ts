/**
 * The floor above which fences are given out. Claims can be undone: they wait for no disk, so a power cut undoes the
 * last ones, and a backup that is put back undoes more. Their fences must not be given out once more, as workers of
 * other machines (`millpond serve`) may still hold them.
 *
 * So the floor rises when the file is opened and nobody had it open (a backup may have been put back), when the machine
 * was started anew, when it is another file than before, and when SQLite's number of the schema has changed, as it does
 * when a backup is restored into the open file.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { uptime } from 'node:os'
import type { Database } from './database.ts'
import type { Statements } from './statements.ts'
import { integer } from './values.ts'
import { inTransaction, whileBusy } from './while-busy.ts'

/** Milliseconds. A computed time of the start moves with every correction of the clock. To raise the floor for that does no harm. */
const START_PRECISION = 600_000

/** Differs after every start of the machine. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return String(Math.round((Date.now() - uptime() * 1000) / START_PRECISION))
  }
}

export class Fences {
  readonly #statements: Statements
  readonly #path: string
  #floor = 0
  /** That the floor was read with. */
  #schema: number | null = null

  constructor(statements: Statements, path: string) {
    this.#statements = statements
    this.#path = path
  }

  /** @param origin `new`: the tables were made just now. `unknown`: nobody had the file open, so a backup may have been put back. */
  open(db: Database, busyTimeout: number, origin: 'new' | 'open' | 'unknown'): void {
    if (whileBusy(busyTimeout, () => this.#read()) && origin === 'open') return
    const before = this.#floor
    // The floor is on the disk before any fence above it is given out.
    db.exec('pragma synchronous = full')
    inTransaction(db, busyTimeout, () => {
      // Of clients that open the file at the same time, one raises the floor: a raise since the first look serves this one too.
      if (this.#read() && (origin === 'open' || this.#floor > before)) return
      if (origin !== 'new') this.#raise()
      this.accept()
    })
    db.exec('pragma synchronous = normal')
  }

  /** Within the transaction of a claim. */
  floor(): number {
    if (this.#schemaNow() !== this.#schema && !this.#read()) {
      this.#raise()
      this.accept()
    }
    return this.#floor
  }

  /** Within a transaction that has changed the schema itself: nothing was restored. */
  accept(): void {
    this.#statements.run('fences/origin', { origin: this.#originAt(this.#schemaNow()) })
    this.#read()
  }

  #schemaNow(): number {
    return integer(this.#statements.get('fences/schema')?.schema)
  }

  #originAt(schema: number): string {
    const { dev, ino } = statSync(realpathSync(this.#path), { bigint: true })
    return `${bootId()} ${dev}:${ino} ${schema}`
  }

  #raise(): void {
    this.#statements.run('fences/raise', { now: Date.now() })
  }

  /** False: the origin is another than that of the last raise. */
  #read(): boolean {
    const schema = this.#schemaNow()
    const row = this.#statements.get('fences/floor', { origin: this.#originAt(schema) })
    this.#floor = integer(row?.fences)
    this.#schema = schema
    return row?.current === 1
  }
}
