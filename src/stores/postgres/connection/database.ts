/**
 * What the store needs of a PostgreSQL client; `pg.ts` and `postgresjs.ts` provide it. `json` columns come parsed.
 *
 * A call of the store is one statement and its own transaction. It needs READ COMMITTED, whatever the database has by default, and a deadline on
 * the server. On a connection of our own both are set once. Where the connection is the caller's, or a pooler stands between, nothing may stay
 * behind in the session: there each call is a script (`scriptOf`), which sets both for its own transaction.
 */
import { inlined } from './inline.ts'

export type Row = Record<string, unknown>
export type Query = (text: string, params: readonly unknown[]) => Promise<Row[]>

export interface Database {
  /** A call of the store: one statement in a transaction of its own. */
  call(statement: string, values: readonly unknown[]): Promise<Row[]>
  /** Statements in one message and one transaction. @returns the rows of the last one */
  run(script: string): Promise<Row[]>
  /** A transaction on a connection of its own. @param mode as after `begin` in SQL */
  begin(mode: string): Promise<Session>
  /**
   * Listens on a connection of its own.
   * @param ready called whenever listening has begun: what was notified before may have been missed
   * @param lost called once the connection is lost, unless the client makes it anew
   */
  listen(channel: string, heard: (payload: string) => void, ready: () => void, lost: () => void): Promise<void>
  /** Whether a pooler stands between us and the server, so that a connection is not a session. */
  pooled(): Promise<boolean>
  end(): Promise<void>
}

/** An open transaction. Once its connection is lost, every call rejects. */
export interface Session {
  /** A handler's statement. */
  readonly query: Query
  /** Statements of the store's own, with a deadline where the connection is ours. */
  run(script: string): Promise<Row[]>
  /** Both end the session, whatever comes of them. */
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** A call inside a transaction that has begun. @param deadline ms after which the server gives it up */
export function scriptInside(statement: string, values: readonly unknown[], deadline: number): string {
  return `set local statement_timeout = ${deadline}; ${inlined(statement, values)}`
}

/** A call as a transaction of its own. */
export function scriptOf(statement: string, values: readonly unknown[], deadline: number): string {
  const script = scriptInside(statement, values, deadline)
  return `set transaction isolation level read committed, read write; ${script}`
}

/** The same for all calls of a connection. */
export function sessionSettings(deadline: number): string {
  return `set session characteristics as transaction isolation level read committed, read write; set statement_timeout = ${deadline}`
}

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null
}

/** Of one statement. */
export function rowsOf(answer: unknown): Row[] {
  const rows = Array.isArray(answer) ? answer : isRow(answer) && Array.isArray(answer.rows) ? answer.rows : []
  return rows.filter(isRow)
}

/** Of the last of several statements. */
export function lastRowsOf(answer: unknown): Row[] {
  return rowsOf(Array.isArray(answer) ? answer.at(-1) : answer)
}

/** A handler's read: in a transaction that can write nothing, even where a standby has just been promoted. */
export async function readOnly(database: Database, text: string, params: readonly unknown[]): Promise<Row[]> {
  const session = await database.begin('isolation level read committed read only')
  try {
    return await session.query(text, params)
  } finally {
    await session.rollback().catch(() => {})
  }
}
