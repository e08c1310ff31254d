/** Reads the statements of `contract/sqlite/` and prepares them on a connection. */
import { SQL_FILES } from '../sql-files.ts'
import type { Row, Value } from './values.ts'

/** What we need of a connection: node:sqlite's DatabaseSync has it, and better-sqlite3's Database. */
export interface Connection {
  prepare(sql: string): PreparedStatement
}
interface PreparedStatement {
  run(parameters: Parameters): { changes: number | bigint }
  all(parameters: Parameters): unknown[]
  get(parameters: Parameters): unknown
  setAllowUnknownNamedParameters?(enabled: boolean): void
  setReturnArrays?(enabled: boolean): void
  setReadBigInts?(enabled: boolean): void
}

/** By name. A statement may take fewer. */
type Parameters = Record<string, Value>

const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null

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

/**
 * Runs statements by their names, such as `push/insert`: file and statement. Each is prepared when it is first run: a process that only
 * pushes never compiles the sweep.
 */
export class Statements {
  readonly #connection: Connection
  readonly #prepared = new Map<string, PreparedStatement>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** @returns how many rows it changed */
  run(name: string, parameters: Parameters = {}): number {
    return Number(this.#statement(name).run(parameters).changes)
  }

  all(name: string, parameters: Parameters = {}): Row[] {
    return this.#statement(name).all(parameters).filter(isRow)
  }

  get(name: string, parameters: Parameters = {}): Row | undefined {
    const row = this.#statement(name).get(parameters)
    return isRow(row) ? row : undefined
  }

  #statement(name: string): PreparedStatement {
    let statement = this.#prepared.get(name)
    if (statement === undefined) {
      const source = SOURCES.get(name)
      if (source === undefined) throw new Error(`millpond: contract/sqlite/ has no statement ${name}`)
      statement = this.#connection.prepare(source)
      statement.setAllowUnknownNamedParameters?.(true)
      // A connection of the caller's may have other settings than ours.
      statement.setReturnArrays?.(false)
      statement.setReadBigInts?.(false)
      this.#prepared.set(name, statement)
    }
    return statement
  }
}
