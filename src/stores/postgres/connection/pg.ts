/** The store's connections by `pg`: its own, or the caller's Pool. */
import { isElsewhere, isLost, isNotPrepared } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { type Database, lastRowsOf, type Row, rowsOf, type Session, scriptOf, sessionSettings } from './database.ts'
import { Hosts } from './hosts.ts'
import type { PgClient, PgPool, PgStatement } from './pg-client.ts'
import { pgSession } from './pg-session.ts'

/** Ms until a new connection stands, or one of the pool is free. */
const CONNECT = 10_000
/** Ms between looks whether the one that listens still gets answers. */
const HEARTBEAT = 15_000
/** Ms after which further connections are closed that are not used: a new one costs the server a process, and the first calls their plans. */
const KEEP_IDLE = 60_000
/** The one that listens and one for calls. */
const KEEP = 2

/** Where the pool is ours, not the caller's. */
interface Own {
  hosts?: Hosts
  /**
   * Ms after which a connection is given up on which a call of the store gets no answer: the network swallows everything. No keepalive would
   * notice, since none is sent while something is unanswered, and TCP itself goes on for a quarter of an hour. Where the call only waits
   * for a lock, the server says so before, by the deadline.
   */
  timeout: number
}

export class Pg implements Database {
  readonly #pool: PgPool
  /** Ms after which the server gives up a call. */
  readonly #deadline: number
  readonly #own: Own | undefined
  readonly #limit: { query_timeout?: number }
  #listener: PgClient | undefined
  #ended = false
  #heart: NodeJS.Timeout | undefined

  /** @param deadline 0: none @param own undefined: the pool is the caller's, neither to judge nor to end */
  constructor(pool: PgPool, deadline = 0, own?: Own) {
    this.#pool = pool
    this.#deadline = deadline
    this.#own = own
    this.#limit = own === undefined ? {} : { query_timeout: own.timeout }
  }

  async call(statement: string, values: readonly unknown[]): Promise<Row[]> {
    if (this.#own === undefined) return this.run(scriptOf(statement, values, this.#deadline))
    try {
      return await this.#somewhere(() => this.#callOwn(statement, values))
    } catch (error) {
      if (!isNotPrepared(error)) throw error
      // A handler has taken the prepared statements away; that connection is gone now.
      return this.#callOwn(statement, values)
    }
  }

  async #callOwn(statement: string, values: readonly unknown[]): Promise<Row[]> {
    const client = await this.#pool.connect()
    let failure: Error | boolean = true
    try {
      const rows = this.#isDirect(client)
        ? rowsOf(await client.query({ ...prepared(statement), values: [...values], ...this.#limit }))
        : lastRowsOf(await client.query({ text: scriptOf(statement, values, this.#deadline), ...this.#limit }))
      failure = false
      return rows
    } finally {
      client.release(failure)
    }
  }

  async run(script: string): Promise<Row[]> {
    return lastRowsOf(await this.#somewhere(() => this.#pool.query({ text: script, ...this.#limit })))
  }

  async begin(mode: string): Promise<Session> {
    const client = await this.#somewhere(() => this.#pool.connect())
    const direct = this.#isDirect(client)
    return pgSession(client, {
      mode,
      session: direct ? sessionSettings(this.#deadline) : undefined,
      timeout: this.#own?.timeout,
      alive: () => this.#alive(client),
    })
  }

  #isDirect(client: PgClient): boolean {
    return this.#own?.hosts?.isDirect(client) === true
  }

  /** Where several servers are named, each is tried that did not even get the call. */
  async #somewhere<T>(call: () => Promise<T>): Promise<T> {
    const hosts = this.#own?.hosts
    for (let left = hosts?.count ?? 1; ; left--) {
      try {
        return await call()
      } catch (error) {
        if (hosts === undefined || hosts.count === 1 || !isElsewhere(error)) throw error
        hosts.next()
        if (left <= 1) throw error
      }
    }
  }

  async #alive(client: PgClient): Promise<boolean> {
    try {
      const [row] = await this.run(`select state from pg_stat_activity where pid = ${Number(client.processID)}`)
      // A pooler's numbers mean nothing to the server; but it has answered.
      return !this.#isDirect(client) || row?.state === 'active'
    } catch (error) {
      return !isLost(error)
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void, lost: () => void): Promise<void> {
    const client = await this.#somewhere(() => this.#pool.connect())
    if (this.#ended) return client.release()
    const listen = { text: `listen ${channel}`, ...this.#limit }
    const over = () => {
      if (this.#letGo(client)) lost()
    }
    client.on('error', over)
    client.on('end', over)
    client.on('notification', ({ payload }: { payload?: string }) => heard(payload ?? ''))
    // Bells hold no process.
    client.unref?.()
    this.#listener = client
    try {
      await client.query(listen)
    } catch (error) {
      // Where the loss of the connection was heard of first, that has been told.
      if (!this.#letGo(client)) return
      throw error
    }
    ready()
    if (this.#own !== undefined) this.#beat(client, listen, over)
  }

  /** @returns whether it was the one that listens */
  #letGo(client: PgClient): boolean {
    if (this.#listener !== client) return false
    clearTimeout(this.#heart)
    this.#listener = undefined
    client.removeAllListeners('notification')
    client.release(true)
    return true
  }

  /** A connection on which nothing comes is no different from one that is dead. To listen once more changes nothing. */
  #beat(client: PgClient, listen: PgStatement, over: () => void): void {
    const next = () => {
      if (this.#listener === client) client.query(listen).then(() => this.#beat(client, listen, over), over)
    }
    this.#heart = setTimeout(next, Math.min(HEARTBEAT, this.#own?.timeout ?? HEARTBEAT)).unref()
  }

  async pooled(): Promise<boolean> {
    const client = await this.#somewhere(() => this.#pool.connect())
    try {
      if (this.#own !== undefined) return !this.#isDirect(client)
      const [row] = lastRowsOf(await client.query({ text: 'select pg_backend_pid() as pid' }))
      return client.processID !== row?.pid
    } finally {
      client.release()
    }
  }

  async end(): Promise<void> {
    this.#ended = true
    if (this.#listener !== undefined) this.#letGo(this.#listener)
    if (this.#own !== undefined) await this.#pool.end()
  }
}

/** Statement → its name. There are as many as the store has operations, for each schema. */
const names = new Map<string, string>()

function prepared(text: string): { name: string; text: string } {
  const name = names.get(text) ?? `millpond_${names.size}`
  names.set(text, name)
  return { name, text }
}

/** With connections of its own, the one that listens among them. */
export async function openPg(settings: Settings): Promise<Database> {
  const { connections, timeout, deadline, listen } = settings
  const hosts = new Hosts(settings)
  const options = {
    max: connections,
    min: KEEP,
    idleTimeoutMillis: KEEP_IDLE,
    application_name: 'millpond',
    connectionTimeoutMillis: Math.min(CONNECT, timeout),
    // An open store alone keeps no process alive; calls that wait for an answer do.
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: HEARTBEAT,
  }
  // Where LISTEN is not wanted a pooler may stand between that cannot be recognised.
  const pool = await hosts.openPool(options, listen === 'off' ? undefined : sessionSettings(deadline))
  return new Pg(pool, deadline, { hosts, timeout })
}
