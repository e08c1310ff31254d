/**
 * Reads the statements of `contract/sqlite/` and prepares them on a connection.
 *
 * The files use named parameters, so that every language reads the same ones. Node binds names slowly (a lookup per name
 * and run), so each name becomes a plain `?` here and the values are put in order from a list of names made once. A name
 * used twice is bound twice: `?1` would do for node:sqlite, but better-sqlite3 takes numbered ones for named ones.
 */
import { SQL_FILES } from '../sql-files.ts'
import type { Row, Value } from './values.ts'

/** What we need of a connection: node:sqlite's DatabaseSync has it, and better-sqlite3's Database. */
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

type Parameters = Readonly<Record<string, Value>>

/** Skips over strings, quoted names and comments; finds `:name` elsewhere. */
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|:([a-z_]+)/g

const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null

export class Statement {
  readonly #prepared: PreparedStatement
  /** In the order of the question marks. */
  readonly #names: string[] = []
  readonly #values: Value[]

  constructor(connection: Connection, source: string) {
    const sql = source.replace(TOKEN, (token, name: string | undefined) => {
      if (name === undefined) return token.startsWith('--') ? '' : token
      this.#names.push(name)
      return '?'
    })
    this.#values = new Array(this.#names.length).fill(null)
    this.#prepared = connection.prepare(sql.trim())
    // A connection of the caller's may have other settings than ours.
    this.#prepared.setReturnArrays?.(false)
    this.#prepared.setReadBigInts?.(false)
  }

  #bind(parameters: Parameters): Value[] {
    for (let at = 0; at < this.#names.length; at++) {
      const value = parameters[this.#names[at] ?? '']
      if (value === undefined) throw new TypeError(`millpond: no value for :${this.#names[at]}`)
      this.#values[at] = value
    }
    return this.#values
  }

  /** @returns how many rows it changed */
  run(parameters: Parameters = {}): number {
    return Number(this.#prepared.run(...this.#bind(parameters)).changes)
  }

  all(parameters: Parameters = {}): Row[] {
    return this.#prepared.all(...this.#bind(parameters)).filter(isRow)
  }

  get(parameters: Parameters = {}): Row | undefined {
    const row = this.#prepared.get(...this.#bind(parameters))
    return isRow(row) ? row : undefined
  }
}

/** By their names, such as `push/insert`: file and statement. */
const SOURCES: ReadonlyMap<string, string> = new Map(
  [...SQL_FILES].flatMap(([file, texts]) =>
    texts
      .split(/^-- @statement /m)
      .slice(1)
      .map((part): [string, string] => {
        const end = part.indexOf('\n')
        return [`${file.replace('.sql', '')}/${part.slice(0, end)}`, part.slice(end)]
      }),
  ),
)

/** Prepares each statement when it is first asked for: a process that only pushes never compiles the sweep. */
export class Statements {
  readonly #connection: Connection
  readonly #prepared = new Map<string, Statement>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** @param name as in `push/insert`: file and statement */
  get(name: string): Statement {
    let statement = this.#prepared.get(name)
    if (statement === undefined) {
      const source = SOURCES.get(name)
      if (source === undefined) throw new Error(`millpond: contract/sqlite/ has no statement ${name}`)
      statement = new Statement(this.#connection, source)
      this.#prepared.set(name, statement)
    }
    return statement
  }

  /** Nothing stays of work that answers false or throws. */
  inSavepoint(work: () => boolean): boolean {
    this.get('savepoint/begin').run()
    try {
      const kept = work()
      if (!kept) this.get('savepoint/undo').run()
      this.get('savepoint/end').run()
      return kept
    } catch (error) {
      try {
        this.get('savepoint/undo').run()
        this.get('savepoint/end').run()
      } catch {
        // Some errors make SQLite roll back everything, savepoints too; the first error is the one to tell.
      }
      throw error
    }
  }
}
