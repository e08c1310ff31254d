/** Waiting for the locks of other connections. */
import { isResult } from '../errors.ts'
import type { Database } from './database.ts'

const pause = new Int32Array(new SharedArrayBuffer(4))

/**
 * Tries again while the file is locked. SQLite's own waiting backs off to 100 ms, which starves a connection that meets a
 * steady writer, and it does not wait at all where it suspects a deadlock, such as when two connections switch to WAL at
 * once. Most locks are held for a fraction of a millisecond, so the first waits are as short.
 */
export function whileBusy<T>(timeout: number, attempt: () => T): T {
  let until: number | undefined
  for (let wait = 0.05; ; wait = Math.min(wait * 1.2, 1)) {
    try {
      return attempt()
    } catch (error) {
      if (!isResult(error, 'BUSY', 5)) throw error
      until ??= performance.now() + timeout
      if (performance.now() >= until) throw error
    }
    // Of random length, so that two that wait do not meet again and again.
    Atomics.wait(pause, 0, 0, wait * (0.5 + Math.random()))
  }
}

/** By a prepared statement: an error of `exec` has no result code on Deno. */
export function begin(db: Database, timeout: number, how: 'begin' | 'begin immediate'): void {
  whileBusy(timeout, () => db.prepare(how).run())
}

export function inTransaction(db: Database, busyTimeout: number, work: () => void): void {
  begin(db, busyTimeout, 'begin immediate')
  try {
    work()
    db.exec('commit')
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}
