/**
 * What the store needs of a PostgreSQL client; `postgresjs.ts` and `pg.ts` provide it. The store's own calls are texts with their values in
 * them, sent by the simple protocol: several statements in one message are one transaction and one round trip, and nothing
 * of them stays behind in the session, so they work behind a pooler, too. `json` columns come parsed.
 */
export type Row = Record<string, unknown>
export type Query = (text: string, params: readonly unknown[]) => Promise<Row[]>

export interface Database {
  /** Statements in one message and one transaction. @returns the rows of the last one */
  run(script: string): Promise<Row[]>
  /** A transaction on a connection of its own. @param mode as after `begin` in SQL */
  begin(mode: string): Promise<Session>
  /**
   * Listens on a connection of its own, which it makes anew when it is lost.
   * @param ready called whenever listening has begun: what was notified before may have been missed
   */
  listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void>
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
