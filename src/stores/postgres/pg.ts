/** The store's connections by `pg`: its own, or the caller's Pool. */
import { type Database, isRow, loadClient, type Row, rowsOf, type Session } from './database.ts'
import type { Settings } from './settings.ts'

/** What we use of a Pool and of its clients; as declared by `@types/pg`, which nobody should need for this. */
export interface PgPool {
  query(text: string, params: unknown[]): Promise<{ rows: unknown[] }>
  connect(): Promise<PgClient>
  end(): Promise<void>
}
/** `extended` takes one statement only, also without parameters. */
interface PgStatement {
  text: string
  values: unknown[]
  queryMode: 'extended'
}
interface PgClient {
  processID?: number | null
  query(text: string | PgStatement): Promise<{ rows: unknown[] }>
  on(event: string, listener: (...args: never[]) => void): unknown
  removeAllListeners(event: string): unknown
  removeListener(event: string, listener: (error: Error) => void): unknown
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
  /** Whether it is ours to end. */
  readonly #own: boolean
  #ended = false
  #retry: NodeJS.Timeout | undefined
  forgetful = true

  constructor(pool: PgPool, own = false) {
    this.#pool = pool
    this.#own = own
  }

  async query(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    return rowsOf(await this.#pool.query(text, [...params]))
  }

  async reserve(): Promise<Session> {
    const client = await this.#pool.connect()
    let lost: Error | undefined
    // Nobody else listens while it is out of the pool, and an error that nobody hears ends the process.
    const hear = (error: Error) => {
      lost = error
    }
    client.on('error', hear)
    return {
      query: async (text, params = []) =>
        rowsOf(await client.query({ text, values: [...params], queryMode: 'extended' })),
      script: async (text) => {
        await client.query(text)
      },
      release: () => {
        client.removeListener('error', hear)
        client.release(lost ?? false)
      },
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    const client = await this.#pool.connect()
    if (this.#ended) {
      client.release()
      return
    }
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
    try {
      await client.query(`listen ${channel}`)
    } catch (error) {
      // Where the loss of the connection was heard of first, it listens anew already.
      if (this.#listener !== client) return
      this.#listener = undefined
      client.release(true)
      throw error
    }
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
    if (this.#own) await this.#pool.end()
  }
}

/** With connections of its own, the one that listens among them. */
export async function openPg({ url, connections }: Settings): Promise<Database> {
  const { default: pg } = await loadClient('pg', () => import('pg'))
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    application_name: 'millpond',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  })
  // A connection may be lost while nobody has it or before whoever got it can listen; the next call tells.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', () => {})
  return new Pg(pool, true)
}
