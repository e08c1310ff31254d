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

const FIRST_PAUSE = 20
const LONGEST_PAUSE = 500

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
  #retry: NodeJS.Timeout | undefined
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

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    const client = await this.#somewhere(() => this.#pool.connect())
    if (this.#ended) {
      client.release()
      return
    }
    const listen = { text: `listen ${channel}`, ...this.#limit }
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
    if (this.#own !== undefined) this.#beat(client, listen, lost)
  }

  /** A connection on which nothing comes is no different from one that is dead. To listen once more changes nothing. */
  #beat(client: PgClient, listen: PgStatement, lost: () => void): void {
    this.#heart = setTimeout(
      () => {
        if (this.#listener !== client) return
        client.query(listen).then(() => this.#beat(client, listen, lost), lost)
      },
      Math.min(HEARTBEAT, this.#own?.timeout ?? HEARTBEAT),
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
    clearTimeout(this.#retry)
    clearTimeout(this.#heart)
    const listener = this.#listener
    this.#listener = undefined
    listener?.removeAllListeners('notification')
    listener?.release(true)
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
