/** The store's connections by postgres.js: its own, or the caller's `sql`. */
import type postgres from 'postgres'
import { type Database, loadClient, type Row, rowsOf, type Session } from './database.ts'
import type { Settings } from './settings.ts'

/** Seconds: a server that comes back is noticed this late at the most. */
const LONGEST_PAUSE = 0.5
const FIRST_PAUSE = 0.02

export function isPostgresJs(client: unknown): client is postgres.Sql {
  return typeof client === 'function' && 'unsafe' in client && 'reserve' in client && 'listen' in client
}

/** One connection less than allowed, since listening takes one. */
export async function openPostgresJs(settings: Settings): Promise<Database> {
  const { default: connect } = await loadClient('postgres', () => import('postgres'))
  const sql = connect(settings.url, {
    max: settings.connections - 1,
    connect_timeout: 10,
    backoff: (retries: number) => Math.min(FIRST_PAUSE * 2 ** retries, LONGEST_PAUSE),
    onnotice: () => {},
    connection: { application_name: 'millpond' },
  })
  return new PostgresJs(sql, true)
}

export class PostgresJs implements Database {
  readonly #sql: postgres.Sql
  /** Whether it is ours to end. */
  readonly #own: boolean
  #listening: { unlisten: () => Promise<void> } | undefined
  forgetful = false

  constructor(sql: postgres.Sql, own: boolean) {
    this.#sql = sql
    this.#own = own
  }

  async query(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    return rowsOf(await this.#sql.unsafe(text, [...params] as postgres.ParameterOrJSON<never>[], this.#options()))
  }

  async reserve(): Promise<Session> {
    const reserved = await this.#sql.reserve()
    const options = this.#options()
    return {
      query: async (text, params = []) =>
        rowsOf(await reserved.unsafe(text, [...params] as postgres.ParameterOrJSON<never>[], options)),
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
    if (this.#own) await this.#sql.end({ timeout: 5 })
    else await this.#listening?.unlisten()
  }

  /** Never the simple protocol: it would let several statements through. */
  #options(): object {
    return { prepare: !this.forgetful, simple: false }
  }
}
