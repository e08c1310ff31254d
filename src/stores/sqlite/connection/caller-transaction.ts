/**
 * Pushes on a connection of the caller's own, inside the transaction that is open there: the jobs come to be with the
 * caller's data, or not at all. This runs on the caller's thread, as the connection can be used nowhere else.
 */
import { realpathSync } from 'node:fs'
import type { PushOutcome } from '../../../values/jobs/records.ts'
import type { QueueSettings } from '../../../values/settings/settings.ts'
import { mismatch } from '../../transactions.ts'
import type { Driver } from '../driver.ts'
import { toMillpondError } from '../errors.ts'
import { configure } from '../operations/configure.ts'
import { pushWithin } from '../operations/push.ts'
import { Queues } from '../queues.ts'
import type { PackedPush } from '../wire.ts'
import { Fences } from './fences.ts'
import { type Connection, Statements } from './statements.ts'
import { text } from './values.ts'

const prepared = new WeakMap<Connection, Statements>()

function isConnection(tx: unknown): tx is Connection {
  return typeof tx === 'object' && tx !== null && 'prepare' in tx && typeof tx.prepare === 'function'
}

/** `isTransaction` is node:sqlite's name for it, `inTransaction` better-sqlite3's. */
function hasTransaction(tx: object): boolean {
  if ('isTransaction' in tx) return tx.isTransaction === true
  return 'inTransaction' in tx && tx.inTransaction === true
}

function sameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false
  }
}

function otherLibrary({ module }: Driver): string {
  const own = module === null ? 'node:sqlite' : module
  const advice =
    module === null ? ' To use better-sqlite3, open the pond with the option driver: its class Database.' : ''
  return `tx is a connection of another SQLite library than the pond's (${own}). Two libraries in one process damage the file.${advice}`
}

/** Listeners learn of the jobs once the caller commits: the thread sees the file change. */
export function pushWithCaller(
  tx: unknown,
  { driver, path }: { driver: Driver; path: string },
  { jobs, whole = false, settings, now }: PackedPush & { settings: readonly QueueSettings[]; now: number },
): PushOutcome[] | null {
  if (!isConnection(tx)) throw mismatch('tx is neither a connection to the file nor the ctx.tx of a handler')
  // Before any use: the other library must not even read the file.
  if (!driver.owns(tx)) throw mismatch(otherLibrary(driver))
  try {
    const statements = prepared.get(tx) ?? new Statements(tx)
    prepared.set(tx, statements)
    const file = text(statements.get('savepoint/file')?.file)
    if (!sameFile(file, path)) {
      throw mismatch(
        `tx is on ${file === '' ? 'a database in memory' : file}, the pond on ${path}: open a connection to the same file`,
      )
    }
    if (!hasTransaction(tx)) throw mismatch('no transaction is open on tx: begin one, push, then commit')
    const queues = new Queues(statements)
    const context = { statements, queues, fences: new Fences(statements, path), now }
    for (const each of settings) configure(context, each)
    return pushWithin(context, { jobs, whole })
  } catch (error) {
    throw toMillpondError(error, path)
  }
}
