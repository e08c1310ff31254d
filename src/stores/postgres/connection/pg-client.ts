/** What we use of `pg`: a Pool and its clients, as declared by `@types/pg`, which nobody should need for this. */
import { checkPg } from '../../driver.ts'
import { type Cells, isRow } from './database.ts'

export interface PgPool {
  connect(): Promise<PgClient>
  end(): Promise<void>
  /** Of a pool of our own: whether what is set on the connection stays there, and holds for the store's calls. */
  isDirect?(client: PgClient): boolean
}

export interface PgStatement {
  text: string
  /** It is prepared once per connection, under this name. */
  name?: string
  /** None: the simple protocol. */
  values?: unknown[]
  /** Takes one statement only, also without parameters. */
  queryMode?: 'extended'
  /** Ms until the client gives up; the connection is of no use then. */
  query_timeout?: number | undefined
  /** Of the store's own statements: columns by position, as the server sends them. */
  rowMode?: 'array'
  types?: { getTypeParser: () => (value: unknown) => string }
}

/** For the store's own statements: whatever parsers the application has set, `pg.types.setTypeParser` included. */
export const AS_SENT = { rowMode: 'array', types: { getTypeParser: () => textOf } } as const

// With the client's `binary` a text comes in a buffer.
const textOf = (value: unknown): string =>
  ArrayBuffer.isView(value) ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString() : String(value)

export interface PgClient {
  processID?: number | null
  query(statement: PgStatement): Promise<unknown>
  on(event: string, listener: (...args: never[]) => void): unknown
  removeListener(event: string, listener: (error: Error) => void): unknown
  release(error?: Error | boolean): void
  /** Its socket no longer holds the process. */
  unref?(): void
}

/** @throws NotSupported for one of a `pg` that is too old */
export function isPgPool(client: unknown): client is PgPool {
  const is =
    isRow(client) &&
    typeof client.query === 'function' &&
    typeof client.connect === 'function' &&
    'totalCount' in client
  if (is) checkPg(client.Client)
  return is
}

/** Of the last statement of a text that was sent `AS_SENT`. */
export function cellsOf(answer: unknown): Cells[] {
  const last: unknown = Array.isArray(answer) ? answer.at(-1) : answer
  const rows = isRow(last) && Array.isArray(last.rows) ? last.rows : []
  return rows.filter(isCells)
}

export const isCells = (row: unknown): row is Cells =>
  Array.isArray(row) && row.every((cell) => cell === null || typeof cell === 'string')
