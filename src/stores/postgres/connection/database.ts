/**
 * What the store needs of a PostgreSQL client; `pg.ts` and `postgresjs.ts` provide it.
 *
 * Answers to the store's own statements are cells: texts as the server sends them, in the order of the columns. No type
 * parser or transform of the caller's client touches them. A handler's statements are answered as the client is set up,
 * in rows.
 *
 * A call of the store is one statement and its own transaction. It needs READ COMMITTED, whatever the database has by
 * default, and a deadline on the server. On a connection of our own both are set once, and statements are prepared.
 * Where the connection is the caller's, or a pooler stands between, nothing may stay behind in the session: there each
 * call is a script (`script.ts`), which sets both for its own transaction.
 */

export type Row = Record<string, unknown>
/** A row of the store's own statement. */
export type Cells = readonly (string | null)[]
export type Query = (text: string, params: readonly unknown[]) => Promise<Row[]>

export interface Database {
  /** A call of the store: one statement in a transaction of its own. */
  call(statement: string, values: readonly unknown[]): Promise<Cells[]>
  /** Statements in one message and one transaction. @returns the rows of the last one */
  run(script: string): Promise<Cells[]>
  /** A transaction on a connection of its own. @param mode as after `begin` in SQL */
  begin(mode: string): Promise<Session>
  /**
   * Listens on a connection of its own, until that is lost or the database is ended; then it resolves or rejects.
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
  run(script: string): Promise<Cells[]>
  /** Ends the session, whatever comes of it. Once ended it does nothing. */
  end(how: 'commit' | 'rollback'): Promise<void>
}

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null
}

/** Of one statement. */
export function rowsOf(answer: unknown): Row[] {
  const rows = Array.isArray(answer) ? answer : isRow(answer) && Array.isArray(answer.rows) ? answer.rows : []
  return rows.filter(isRow)
}

/** A handler's read: in a transaction that can write nothing, even where a standby has just been promoted. */
export async function readOnly(database: Database, text: string, params: readonly unknown[]): Promise<Row[]> {
  const session = await database.begin('isolation level read committed read only')
  try {
    return await session.query(text, params)
  } finally {
    await session.end('rollback').catch(() => {})
  }
}
