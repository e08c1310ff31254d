/** What we use of `pg`: a Pool and its clients, as declared by `@types/pg`, which nobody should need for this. */
import { isRow } from './database.ts'

export interface PgPool {
  query(statement: PgStatement): Promise<{ rows: unknown[] }>
  query(text: string, params: unknown[]): Promise<{ rows: unknown[] }>
  connect(): Promise<PgClient>
  end(): Promise<void>
}

export interface PgStatement {
  text: string
  values: unknown[]
  /** Prepared on first use, and kept under this name for as long as the connection lives. */
  name?: string
  /** Takes one statement only, also without parameters. */
  queryMode?: 'extended'
  /** Ms until the client gives up; the connection is of no use then. */
  query_timeout?: number
}

export interface PgClient {
  processID?: number | null
  query(text: string | PgStatement): Promise<{ rows: unknown[] }>
  on(event: string, listener: (...args: never[]) => void): unknown
  removeAllListeners(event: string): unknown
  removeListener(event: string, listener: (error: Error) => void): unknown
  release(error?: Error | boolean): void
  /** Its socket no longer holds the process. */
  unref?(): void
}

export function isPgPool(client: unknown): client is PgPool {
  return (
    isRow(client) &&
    typeof client.query === 'function' &&
    typeof client.connect === 'function' &&
    'totalCount' in client
  )
}
