/** The store's connections by a `pg` Pool that the caller brings. */
import { type Database, isRow, type Row, rowsOf, type Session } from './database.ts'

/** What we use of a Pool and of its clients; as declared by `@types/pg`, which nobody should need for this. */
export interface PgPool {
  query(text: string, params: unknown[]): Promise<{ rows: unknown[] }>
  connect(): Promise<PgClient>
}
interface PgClient {
  processID?: number | null
  query(text: string, params?: unknown[]): Promise<{ rows: unknown[] }>
  on(event: string, listener: (...args: never[]) => void): unknown
  removeAllListeners(event: string): unknown
  release(error?: Error | boolean): void
}

export function isPgPool(client: unknown): client is PgPool {
  return (
    isRow(client) &&
    typeof client.query === 'function' &&
    typeof client.connect === 'function' &&
    'totalCount' in client
  )
}

const FIRST_PAUSE = 20
const LONGEST_PAUSE = 500

export class Pg implements Database {
  readonly #pool: PgPool
  #listener: PgClient | undefined
  #ended = false
  #retry: NodeJS.Timeout | undefined
  forgetful = true

  constructor(pool: PgPool) {
    this.#pool = pool
  }

  async query(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    return rowsOf(await this.#pool.query(text, [...params]))
  }

  async reserve(): Promise<Session> {
    const client = await this.#pool.connect()
    return {
      query: async (text, params = []) => rowsOf(await client.query(text, [...params])),
      script: async (text) => {
        await client.query(text)
      },
      release: () => client.release(),
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    const client = await this.#pool.connect()
    const lost = () => {
      if (this.#listener !== client) return
      this.#listener = undefined
      client.release(true)
      this.#relisten(channel, heard, ready, FIRST_PAUSE)
    }
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }: { payload?: string }) => heard(payload ?? ''))
    this.#listener = client
    await client.query(`listen ${channel}`)
    ready()
  }

  #relisten(channel: string, heard: (payload: string) => void, ready: () => void, pause: number): void {
    if (this.#ended) return
    this.#retry = setTimeout(() => {
      this.listen(channel, heard, ready).catch(() =>
        this.#relisten(channel, heard, ready, Math.min(pause * 2, LONGEST_PAUSE)),
      )
    }, pause).unref()
  }

  async pooled(): Promise<boolean> {
    const client = await this.#pool.connect()
    try {
      const [row] = rowsOf(await client.query('select pg_backend_pid() as pid'))
      return client.processID !== row?.pid
    } finally {
      client.release()
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    clearTimeout(this.#retry)
    const listener = this.#listener
    this.#listener = undefined
    listener?.removeAllListeners('notification')
    listener?.release(true)
  }
}
