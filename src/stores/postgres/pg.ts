/** The store's connections by `pg`: its own, or the caller's Pool. */
import { loadPg } from '../driver.ts'
import { type Database, type Row, rowsOf, type Session } from './database.ts'
import { isLost } from './errors.ts'
import type { PgClient, PgPool, PgStatement } from './pg-client.ts'

import { pgSession } from './pg-session.ts'
import { type Settings, TIMEOUT } from './settings.ts'
import { Statements } from './statements.ts'

/** Ms until a new connection stands, or one of the pool is free. */
const CONNECT = 10_000
/** Ms between looks whether the one that listens still gets answers. */
const HEARTBEAT = 15_000
/** Ms after which further connections are closed that are not used: a new one costs the server a process, and the first calls their plans. */
const KEEP_IDLE = 60_000
/** The one that listens and one for calls. */
const KEEP = 2

const FIRST_PAUSE = 20
const LONGEST_PAUSE = 500

export class Pg implements Database {
  readonly #pool: PgPool
  readonly #statements = new Statements()
  #listener: PgClient | undefined
  /** Ms; undefined: the pool is not ours, neither to judge nor to end. */
  readonly #timeout: number | undefined
  readonly #limit: { query_timeout?: number }
  #ended = false
  #retry: NodeJS.Timeout | undefined
  #heart: NodeJS.Timeout | undefined

  /**
   * @param own whether the pool is ours
   * @param timeout where it is: ms after which a connection is given up on which one of the store's calls gets no answer: the network swallows
   * everything. No keepalive would notice, since none is sent while something is unanswered, and TCP itself goes on for a quarter of an
   * hour. Where the call only waits for a lock, the server says so before (`enter` in `contract/postgres/push.sql`).
   */
  constructor(pool: PgPool, own = false, timeout = TIMEOUT) {
    this.#pool = pool
    this.#timeout = own ? timeout : undefined
    this.#limit = own ? { query_timeout: timeout } : {}
  }

  get forgetful(): boolean {
    return this.#statements.off
  }

  set forgetful(value: boolean) {
    this.#statements.off = value
  }

  async query(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    try {
      return await this.#query(text, params)
    } catch (error) {
      if (!this.#statements.refused(error)) throw error
      return this.#query(text, params)
    }
  }

  async #query(text: string, params: readonly unknown[]): Promise<Row[]> {
    const name = this.#statements.nameOf(text)
    const statement = { text, values: [...params], ...this.#limit }
    return rowsOf(await this.#pool.query(name === undefined ? statement : { ...statement, name }))
  }

  async reserve(): Promise<Session> {
    const client = await this.#pool.connect()
    return pgSession(client, this.#timeout, (process) => this.#alive(process))
  }

  async #alive(process: number | null | undefined): Promise<boolean> {
    try {
      const [row] = await this.query('select state from pg_stat_activity where pid = $1::integer', [process])
      // A pooler's numbers mean nothing to the server; but it has answered.
      return this.forgetful || row?.state === 'active'
    } catch (error) {
      return !isLost(error)
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    const client = await this.#pool.connect()
    if (this.#ended) {
      client.release()
      return
    }
    const listen = { text: `listen ${channel}`, values: [], ...this.#limit }
    const lost = () => {
      if (this.#listener !== client) return
      clearTimeout(this.#heart)
      this.#listener = undefined
      client.release(true)
      this.#relisten(channel, heard, ready, FIRST_PAUSE)
    }
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }: { payload?: string }) => heard(payload ?? ''))
    // Bells hold no process.
    client.unref?.()
    this.#listener = client
    try {
      await client.query(listen)
    } catch (error) {
      // Where the loss of the connection was heard of first, it listens anew already.
      if (this.#listener !== client) return
      this.#listener = undefined
      client.release(true)
      throw error
    }
    ready()
    if (this.#timeout !== undefined) this.#beat(client, listen, lost)
  }

  /** A connection on which nothing comes is no different from one that is dead. To listen once more changes nothing. */
  #beat(client: PgClient, listen: PgStatement, lost: () => void): void {
    this.#heart = setTimeout(
      () => {
        if (this.#listener !== client) return
        client.query(listen).then(() => this.#beat(client, listen, lost), lost)
      },
      Math.min(HEARTBEAT, this.#timeout ?? HEARTBEAT),
    ).unref()
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
      const [row] = rowsOf(await client.query({ text: 'select pg_backend_pid() as pid', values: [], ...this.#limit }))
      return client.processID !== row?.pid
    } finally {
      client.release()
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    clearTimeout(this.#retry)
    clearTimeout(this.#heart)
    const listener = this.#listener
    this.#listener = undefined
    listener?.removeAllListeners('notification')
    listener?.release(true)
    if (this.#timeout !== undefined) await this.#pool.end()
  }
}

/** With connections of its own, the one that listens among them. */
export async function openPg({ url, connections, timeout }: Settings): Promise<Database> {
  const { default: pg } = await loadPg()
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    min: KEEP,
    idleTimeoutMillis: KEEP_IDLE,
    application_name: 'millpond',
    connectionTimeoutMillis: Math.min(CONNECT, timeout),
    // An open store alone keeps no process alive; calls that wait for an answer do.
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: HEARTBEAT,
  })
  // A connection may be lost while nobody has it or before whoever got it can listen; the next call tells.
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('error', () => {})
  return new Pg(pool, true, timeout)
}
