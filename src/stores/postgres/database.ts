/**
 * What the store needs of a PostgreSQL client; `postgresjs.ts` and `pg.ts` provide it. Parameters are texts, numbers, booleans
 * and nulls, cast in the statement, so that no client has to know types. Answers are plain rows; `json` columns come parsed.
 */
export type Row = Record<string, unknown>
export type Query = (text: string, params: readonly unknown[]) => Promise<Row[]>

export interface Database {
  query(text: string, params?: readonly unknown[]): Promise<Row[]>
  /** A connection of one's own, until released. */
  reserve(): Promise<Session>
  /**
   * Listens on a connection of its own, which it makes anew when it is lost.
   * @param ready called whenever listening has begun: what was notified before may have been missed
   */
  listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void>
  /** Whether a pooler stands between us and the server, so that a connection is not a session. */
  pooled(): Promise<boolean>
  /** Do not leave prepared statements behind: the next transaction may be on another connection of the pooler's. */
  forgetful: boolean
  end(): Promise<void>
}

export interface Session {
  /** A handler's statement. */
  query(text: string, params?: readonly unknown[]): Promise<Row[]>
  /** One of the store's own, with a deadline where the connection is ours. */
  own(text: string, params?: readonly unknown[]): Promise<Row[]>
  begin(): Promise<void>
  /** Several statements in one text, without parameters. */
  script(text: string): Promise<void>
  release(): void
}

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null
}

export function rowsOf(answer: unknown): Row[] {
  const rows = Array.isArray(answer) ? answer : isRow(answer) && Array.isArray(answer.rows) ? answer.rows : []
  return rows.filter(isRow)
}
