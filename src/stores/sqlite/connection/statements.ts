/**
 * Reads the statements of `contract/sqlite/` and prepares them on a connection.
 *
 * Node binds values by name slowly, half as fast as by place. So each `:name` becomes a `?`, with a list of the names in the order of their
 * places. A name used twice is bound twice: `?1` would do for node:sqlite, but better-sqlite3 takes numbered ones for named ones.
 */
import { SQL_FILES } from '../sql-files.ts'
import { isRow, type Row, type Value } from './values.ts'

/** What statements need of a connection: node:sqlite's DatabaseSync has it, and better-sqlite3's Database. */
export interface Connection {
  prepare(sql: string): PreparedStatement
}
interface PreparedStatement {
  run(...values: Value[]): { changes: number | bigint }
  all(...values: Value[]): unknown[]
  get(...values: Value[]): unknown
  setReturnArrays?(enabled: boolean): void
  setReadBigInts?(enabled: boolean): void
}

type Prepared = readonly [PreparedStatement, names: readonly string[]]

/** By name. A statement may take fewer. */
export type Parameters = Readonly<Record<string, Value>>

/** Skips over strings, quoted names and comments; finds `:name` elsewhere. */
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|:([a-z_]+)/g

/** By their names, such as `push/insert`: file and statement. */
const SOURCES = new Map<string, string>()
for (const [file, texts] of SQL_FILES) {
  const [, ...parts] = texts.split(/^-- @statement (\w+)$/m)
  for (let at = 0; at < parts.length; at += 2) {
    SOURCES.set(`${file.replace('.sql', '')}/${parts[at]}`, parts[at + 1] ?? '')
  }
}

/**
 * Runs statements by their names, such as `push/insert`: file and statement. Each is prepared when it is first run: a process that only
 * pushes never compiles the sweep.
 */
export class Statements {
  readonly #connection: Connection
  readonly #prepared = new Map<string, Prepared>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** @returns how many rows it changed */
  run(name: string, parameters: Parameters = {}): number {
    const [statement, values] = this.#bind(name, parameters)
    return Number(statement.run(...values).changes)
  }

  all(name: string, parameters: Parameters = {}): Row[] {
    const [statement, values] = this.#bind(name, parameters)
    return statement.all(...values).filter(isRow)
  }

  get(name: string, parameters: Parameters = {}): Row | undefined {
    const [statement, values] = this.#bind(name, parameters)
    const row = statement.get(...values)
    return isRow(row) ? row : undefined
  }

  #bind(name: string, parameters: Parameters): [PreparedStatement, Value[]] {
    const [statement, names] = this.#prepared.get(name) ?? this.#prepare(name)
    const values: Value[] = []
    for (const each of names) {
      const value = parameters[each]
      if (value === undefined) throw new TypeError(`millpond: no value for :${each}`)
      values.push(value)
    }
    return [statement, values]
  }

  #prepare(name: string): Prepared {
    const source = SOURCES.get(name)
    if (source === undefined) throw new Error(`millpond: contract/sqlite/ has no statement ${name}`)
    const names: string[] = []
    const sql = source.replace(TOKEN, (token, found: string | undefined) => {
      if (found === undefined) return token
      names.push(found)
      return '?'
    })
    const statement = this.#connection.prepare(sql)
    // A connection of the caller's may have other settings than ours.
    statement.setReturnArrays?.(false)
    statement.setReadBigInts?.(false)
    const prepared: Prepared = [statement, names]
    this.#prepared.set(name, prepared)
    return prepared
  }
}
