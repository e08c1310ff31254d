/**
 * Pushes on a connection of the caller's own, inside the transaction that is open there: the jobs come to be with the
 * caller's data, or not at all. This runs on the caller's thread, as the connection can be used nowhere else.
 */
import { realpathSync } from 'node:fs'
import { MillpondError } from '../../errors.ts'
import { Engine } from './engine.ts'
import { toMillpondError } from './errors.ts'
import type { NotPushed } from './protocol.ts'
import type { Connection } from './statements.ts'
import type { Value } from './values.ts'

const engines = new WeakMap<Connection, Engine>()

function mismatch(message: string, cause?: unknown): never {
  throw new MillpondError('TransactionMismatch', message, { cause })
}

function isConnection(tx: unknown): tx is Connection {
  return typeof tx === 'object' && tx !== null && 'prepare' in tx && typeof tx.prepare === 'function'
}

/** `isTransaction` is node:sqlite's name for it, `inTransaction` better-sqlite3's. */
function hasTransaction(tx: object): boolean {
  if ('isTransaction' in tx) return tx.isTransaction === true
  return 'inTransaction' in tx && tx.inTransaction === true
}

/** Where the connection's main database is. */
function fileOf(connection: Connection): string {
  const list = connection.prepare(`select file from pragma_database_list where name = 'main'`)
  list.setReturnArrays?.(false)
  const row = list.get()
  return typeof row === 'object' && row !== null && 'file' in row && typeof row.file === 'string' ? row.file : ''
}

function sameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false
  }
}

export function pushWithCaller(tx: unknown, path: string, flat: readonly Value[], now: number): NotPushed {
  if (!isConnection(tx))
    mismatch('tx is neither a connection of node:sqlite or better-sqlite3 nor the ctx.tx of a handler')
  try {
    const file = fileOf(tx)
    if (!sameFile(file, path)) {
      mismatch(
        `tx is on ${file === '' ? 'a database in memory' : file}, the pond on ${path}: open a connection to the same file`,
      )
    }
    if (!hasTransaction(tx)) mismatch('no transaction is open on tx: begin one, push, then commit')
    const engine = engines.get(tx) ?? new Engine(tx)
    engines.set(tx, engine)
    try {
      return engine.pushWithin(flat, now)
    } finally {
      // Who waits for work hears of it once the caller commits: the thread sees the file change.
      engine.ledger.discard()
    }
  } catch (error) {
    throw toMillpondError(error, path)
  }
}
