/**
 * The servers of a URL that names several, as libpq takes them: `postgres://one:5432,two:5432/database`. New connections go to the current
 * one. When it cannot be reached or is read-only, the next one is the current one: after a fail-over the standby that was promoted.
 */
import type pg from 'pg'
import { loadPg } from '../driver.ts'
import { lastRowsOf } from './database.ts'
import type { PgClient } from './pg-client.ts'
import type { Settings } from './settings.ts'

export class Hosts {
  readonly #urls: readonly string[]
  readonly #writable: boolean
  #current = 0

  constructor({ urls, writable }: Pick<Settings, 'urls' | 'writable'>) {
    this.#urls = urls
    this.#writable = writable
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

  async openPool(options: pg.PoolConfig): Promise<pg.Pool> {
    const driver = await loadPg()
    const connectionString = () => this.url
    class Client extends driver.Client {
      constructor() {
        super({ ...options, connectionString: connectionString() })
      }
    }
    const verify = (client: PgClient, checked: (error?: Error) => void) => {
      this.#verify(client).then(() => checked(), checked)
    }
    const pool = new driver.Pool({ ...options, ...{ Client, verify } })
    // A connection may be lost while nobody has it or before whoever got it can listen; the next call tells.
    pool.on('connect', (client) => client.on('error', ignore))
    pool.on('error', ignore)
    return pool
  }

  /** Rejects a new connection to a server that takes no writes. */
  async #verify(client: Pick<PgClient, 'query'>): Promise<void> {
    if (!this.#writable) return
    const [row] = lastRowsOf(await client.query({ text: 'show transaction_read_only' }))
    if (row?.transaction_read_only === 'on') {
      throw Object.assign(new Error('the server takes no writes: it is a standby'), { code: '25006' })
    }
  }
}

function ignore(): void {}
