/** The store's connections by a `sql` of postgres.js that the caller brings. */
import type postgres from 'postgres'
import { type Database, type Row, rowsOf, type Session } from './database.ts'
import { inlined } from './inline.ts'

export function isPostgresJs(client: unknown): client is postgres.Sql {
  return typeof client === 'function' && 'unsafe' in client && 'reserve' in client && 'listen' in client
}

export class PostgresJs implements Database {
  readonly #sql: postgres.Sql
  #listening: { unlisten: () => Promise<void> } | undefined
  forgetful = false

  constructor(sql: postgres.Sql) {
    this.#sql = sql
  }

  async query(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    if (this.forgetful) return rowsOf(await this.#sql.unsafe(inlined(text, params)).simple())
    return rowsOf(await this.#sql.unsafe(text, [...params] as postgres.ParameterOrJSON<never>[], this.#options()))
  }

  async reserve(): Promise<Session> {
    const reserved = await this.#sql.reserve()
    const options = this.#options()
    const query: Session['query'] = async (text, params = []) =>
      rowsOf(await reserved.unsafe(text, [...params] as postgres.ParameterOrJSON<never>[], options))
    return {
      query,
      own: query,
      begin: async () => {
        await query('begin')
      },
      script: async (text) => {
        await reserved.unsafe(text).simple()
      },
      release: () => reserved.release(),
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    this.#listening = await this.#sql.listen(channel, heard, ready)
  }

  async pooled(): Promise<boolean> {
    const answer = await this.#sql.unsafe('select pg_backend_pid() as pid', [], {
      prepare: false,
      simple: false,
    } as object)
    const [row] = rowsOf(answer)
    // A pooler hands out numbers of its own when we connect, and the server those of its processes.
    return answer.state.pid !== row?.pid
  }

  async end(): Promise<void> {
    await this.#listening?.unlisten()
  }

  /** Never the simple protocol: it would let several statements through. */
  #options(): object {
    return { prepare: !this.forgetful, simple: false }
  }
}
