/** The address book, the same table in every variant. A saved address is on the disk before the caller goes on. */
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'

export const DATABASE = 'newsletter.db'
const BUSY = 5
/** How long to wait for other writers, in ms. */
const PATIENCE = 10_000

export class Subscribers {
  readonly #db: DatabaseSync
  readonly #insert: StatementSync
  #last: Promise<unknown> = Promise.resolve()

  constructor(folder: string) {
    this.#db = new DatabaseSync(join(folder, DATABASE))
    this.#db.exec(`
      pragma journal_mode = wal;
      pragma synchronous = full;
      create table if not exists subscribers (email text primary key, since integer not null) strict
    `)
    this.#insert = this.#db.prepare('insert into subscribers (email, since) values (?, ?) on conflict do nothing')
  }

  save(email: string): void {
    this.#insert.run(email, Date.now())
  }

  /** All that `work` does with the connection is committed together, or not at all if it throws. One at a time: there is one connection. */
  transaction<T>(work: (db: DatabaseSync) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#transaction(work))
    this.#last = result.catch(() => {})
    return result
  }

  async #transaction<T>(work: (db: DatabaseSync) => Promise<T>): Promise<T> {
    await this.#begin()
    try {
      const result = await work(this.#db)
      this.#db.exec('commit')
      return result
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('rollback')
      throw error
    }
  }

  /** Workers write to the same file. SQLite itself would wait for them with the event loop standing still. */
  async #begin(): Promise<void> {
    const until = performance.now() + PATIENCE
    for (;;) {
      try {
        this.#db.exec('begin immediate')
        return
      } catch (error) {
        const busy = error instanceof Error && 'errcode' in error && error.errcode === BUSY
        if (!busy || performance.now() > until) throw error
      }
      await setTimeout(1)
    }
  }
}
