/** What we use of `pg`: a Pool and its clients, as declared by `@types/pg`, which nobody should need for this. */
import { checkPg } from '../../driver.ts'
import { isRow, type Row, rowsOf } from './database.ts'

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
}

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

/** Of the last statement of a text. */
export function lastRowsOf(answer: unknown): Row[] {
  return rowsOf(Array.isArray(answer) ? answer.at(-1) : answer)
}
