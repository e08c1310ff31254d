/** A connection to the file, by node:sqlite or by the application's better-sqlite3. */
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { MillpondError } from '../../../values/errors/errors.ts'
import type { Connection } from './statements.ts'
import { isRow, type Row, type Value } from './values.ts'

export interface Database extends Connection {
  readonly isTransaction: boolean
  exec(sql: string): unknown
  /** A statement of a handler's own. @throws InvalidOption for several statements */
  query(text: string, params: readonly Value[]): Row[]
  close(): unknown
}

/** @param module that exports the class of the library; null: node:sqlite */
export function openDatabase(path: string, module: string | null): Database {
  return module === null ? new NodeDatabase(path) : betterDatabase(path, module)
}

function several(): never {
  throw new MillpondError('InvalidOption', 'a query holds one statement: send the others by themselves')
}

class NodeDatabase extends DatabaseSync implements Database {
  query(text: string, params: readonly Value[]): Row[] {
    const statement = this.prepare(text)
    // SQLite compiles the first statement and says nothing of the others: they would be dropped silently.
    const rest = text.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]/g, '')
    if (rest !== '') several()
    return statement.all(...params)
  }
}

/** What we need of better-sqlite3. */
interface BetterStatement {
  readonly reader: boolean
  run(...values: Value[]): { changes: number | bigint }
  all(...values: Value[]): unknown[]
  get(...values: Value[]): unknown
  safeIntegers(enabled: boolean): unknown
}
interface BetterConnection {
  readonly inTransaction: boolean
  prepare(sql: string): BetterStatement
  exec(sql: string): unknown
  close(): unknown
}

const isConstructor = (value: unknown): value is new (path: string, options: object) => unknown =>
  typeof value === 'function'

function isBetter(value: unknown): value is BetterConnection {
  if (typeof value !== 'object' || value === null || !('inTransaction' in value)) return false
  return ['prepare', 'exec', 'close'].every((name) => typeof Reflect.get(value, name) === 'function')
}

function betterDatabase(path: string, module: string): Database {
  const Better: unknown = load(module)
  const connection: unknown = isConstructor(Better) ? new Better(path, { timeout: 0 }) : null
  if (!isBetter(connection)) {
    throw new MillpondError(
      'InvalidOption',
      `driver must be the class Database of better-sqlite3; ${module} has another`,
    )
  }
  return {
    get isTransaction() {
      return connection.inTransaction
    },
    prepare: (sql) => connection.prepare(sql),
    exec: (sql) => connection.exec(sql),
    close: () => connection.close(),
    query: (text, params) => queryBetter(connection, text, params),
  }
}

function load(module: string): unknown {
  try {
    return createRequire(module)(module)
  } catch (cause) {
    throw new MillpondError('DriverMissing', `the thread of the store cannot load ${module}`, { cause })
  }
}

function queryBetter(connection: BetterConnection, text: string, params: readonly Value[]): Row[] {
  let statement: BetterStatement
  try {
    statement = connection.prepare(text)
  } catch (error) {
    if (error instanceof RangeError && /more than one statement/.test(error.message)) several()
    throw error
  }
  if (!statement.reader) {
    statement.run(...params)
    return []
  }
  // Without this, an integer beyond 2^53 would come back as another number. node:sqlite refuses it.
  statement.safeIntegers(true)
  return statement
    .all(...params)
    .filter(isRow)
    .map(exact)
}

function exact(row: Row): Row {
  const values = Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? toNumber(value) : value])
  return Object.fromEntries(values)
}

function toNumber(value: bigint): number {
  const number = Number(value)
  if (Number.isSafeInteger(number)) return number
  throw new RangeError(`the value is too large to be a JavaScript number: ${value}; cast it to text`)
}
