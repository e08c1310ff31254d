/**
 * Reads the statements of `contract/sqlite/` and prepares them on a connection.
 *
 * The files use named parameters, so that every language reads the same ones. Node binds names slowly (a lookup per name
 * and run), so each name becomes a plain `?` here and the values are put in order from a list of names made once. A name
 * used twice is bound twice: `?1` would do for node:sqlite, but better-sqlite3 takes numbered ones for named ones.
 */
import { CONTRACT } from './contract.ts'
import type { Row, Value } from './values.ts'

/** What we need of a connection: node:sqlite's DatabaseSync has it, and better-sqlite3's Database. */
export interface Connection {
  prepare(sql: string): PreparedStatement
}
export interface PreparedStatement {
  run(...values: Value[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  all(...values: Value[]): unknown[]
  get(...values: Value[]): unknown
  setReturnArrays?(enabled: boolean): void
  setReadBigInts?(enabled: boolean): void
}

interface Source {
  sql: string
  /** In the order of the question marks. */
  names: readonly string[]
}

/** Skips over strings, quoted names and comments; finds `:name` elsewhere. */
const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|:([a-z_]+)/g

function parse(statement: string): Source {
  const names: string[] = []
  const sql = statement.replace(TOKEN, (token, name: string | undefined) => {
    if (name === undefined) return token.startsWith('--') ? '' : token
    names.push(name)
    return '?'
  })
  return { sql: sql.trim(), names }
}

const files = new Map<string, Map<string, Source>>()

function load(file: string): Map<string, Source> {
  let statements = files.get(file)
  if (statements === undefined) {
    statements = new Map()
    const parts = (CONTRACT.get(`${file}.sql`) ?? '').split(/^-- @statement ([a-z_]+)$/m)
    for (let i = 1; i + 1 < parts.length; i += 2) statements.set(parts[i] ?? '', parse(parts[i + 1] ?? ''))
    files.set(file, statements)
  }
  return statements
}

function isRow(row: unknown): row is Row {
  return typeof row === 'object' && row !== null
}

/** SQLite's columns are all of type Value; only that the rows are lists has to be seen. */
function areLists(rows: unknown[]): rows is Value[][] {
  return rows.length === 0 || Array.isArray(rows[0])
}

export class Statement {
  readonly #prepared: PreparedStatement
  readonly #names: readonly string[]
  readonly #values: Value[]

  constructor(prepared: PreparedStatement, names: readonly string[]) {
    this.#prepared = prepared
    this.#names = names
    this.#values = new Array(names.length).fill(null)
  }

  #bind(parameters: Readonly<Record<string, Value>>): Value[] {
    const names = this.#names
    for (let i = 0; i < names.length; i++) {
      const value = parameters[names[i] ?? '']
      if (value === undefined) throw new TypeError(`millpond: no value for :${names[i]}`)
      this.#values[i] = value
    }
    return this.#values
  }

  /** How many rows it changed. */
  run(parameters: Readonly<Record<string, Value>> = {}): number {
    return Number(this.#prepared.run(...this.#bind(parameters)).changes)
  }

  all(parameters: Readonly<Record<string, Value>> = {}): Row[] {
    return this.#prepared.all(...this.#bind(parameters)).filter(isRow)
  }

  /** Each row as a list of its columns, which is a third faster than as an object: for claims. Not on connections of the caller's. */
  lists(parameters: Readonly<Record<string, Value>>): Value[][] {
    this.#prepared.setReturnArrays?.(true)
    const rows = this.#prepared.all(...this.#bind(parameters))
    return areLists(rows) ? rows : []
  }

  get(parameters: Readonly<Record<string, Value>> = {}): Row | undefined {
    const row = this.#prepared.get(...this.#bind(parameters))
    return isRow(row) ? row : undefined
  }
}

/** Prepares each statement when it is first asked for: a process that only pushes never compiles the sweep. */
export class Statements {
  readonly #connection: Connection
  readonly #prepared = new Map<string, Statement>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** `name` as in `push/insert`: file and statement. */
  get(name: string): Statement {
    let statement = this.#prepared.get(name)
    if (statement === undefined) {
      const [file = '', part = ''] = name.split('/')
      const source = load(file).get(part)
      if (source === undefined) throw new Error(`millpond: contract/sqlite/${file}.sql has no statement ${part}`)
      const prepared = this.#connection.prepare(source.sql)
      // A connection of the caller's may have other settings than ours.
      prepared.setReturnArrays?.(false)
      prepared.setReadBigInts?.(false)
      statement = new Statement(prepared, source.names)
      this.#prepared.set(name, statement)
    }
    return statement
  }
}
