/**
 * The servers of a URL that names several, as libpq takes them: `postgres://one:5432,two:5432/database`. New connections go to the current
 * one. When it cannot be reached or is read-only, the next one is the current one: after a fail-over the standby that was promoted.
 */
import type pg from 'pg'
import { loadPg } from '../../driver.ts'
import type { Settings } from '../settings.ts'
import { lastRowsOf } from './database.ts'
import type { PgClient } from './pg-client.ts'

export class Hosts {
  readonly #urls: readonly string[]
  readonly #writable: boolean
  readonly #timeout: number
  /** Connections that are sessions of a server, not of a pooler. */
  readonly #direct = new WeakSet<Pick<PgClient, 'query'>>()
  #current = 0

  constructor({ urls, writable, timeout }: Pick<Settings, 'urls' | 'writable' | 'timeout'>) {
    this.#urls = urls
    this.#writable = writable
    this.#timeout = timeout
  }

  get count(): number {
    return this.#urls.length
  }

  get url(): string {
    return this.#urls[this.#current] ?? ''
  }

  next(): void {
    this.#current = (this.#current + 1) % this.#urls.length
  }

  /** Whether what is set on the connection stays there. */
  isDirect(client: PgClient): boolean {
    return this.#direct.has(client)
  }

  /** @param session sent once on each direct connection */
  async openPool(options: pg.PoolConfig, session?: string): Promise<pg.Pool> {
    const driver = await loadPg()
    const connectionString = () => this.url
    class Client extends driver.Client {
      constructor() {
        super({ ...options, connectionString: connectionString() })
      }
    }
    const verify = (client: PgClient, checked: (error?: Error) => void) => {
      this.#verify(client, session).then(() => checked(), checked)
    }
    const pool = new driver.Pool({ ...options, ...{ Client, verify } })
    // A connection may be lost while nobody has it, or before its new owner can listen; the next call tells.
    pool.on('connect', (client) => client.on('error', ignore))
    pool.on('error', ignore)
    return pool
  }

  /** Prepares a new connection. Rejects one to a server that takes no writes. */
  async #verify(client: PgClient, session: string | undefined): Promise<void> {
    if (!this.#writable && session === undefined) return
    const limit = { query_timeout: this.#timeout }
    const text = `select pg_backend_pid() as pid, current_setting('transaction_read_only') as read_only`
    const [row] = lastRowsOf(await client.query({ text, ...limit }))
    if (this.#writable && row?.read_only === 'on') {
      throw Object.assign(new Error('the server takes no writes: it is a standby'), { code: '25006' })
    }
    // A pooler hands out process numbers of its own.
    if (session === undefined || row?.pid !== client.processID) return
    await client.query({ text: session, ...limit })
    this.#direct.add(client)
  }
}

function ignore(): void {}
