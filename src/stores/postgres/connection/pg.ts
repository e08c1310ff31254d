/** The store's connections by `pg`: its own, or the caller's Pool. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isLost } from '../errors.ts'
import type { Cells, Database, Session } from './database.ts'
import { AS_SENT, cellsOf, type PgClient, type PgPool, type PgStatement } from './pg-client.ts'
import { pgSession } from './pg-session.ts'
import { scriptOf, sessionSettings } from './script.ts'

/** Ms between looks whether the one that listens still gets answers. */
const HEARTBEAT = 15_000

export class Pg implements Database {
  readonly #pool: PgPool
  readonly #deadline: number
  readonly #timeout: number | undefined
  #listener: AbortController | undefined
  #ended = false

  /**
   * @param deadline ms after which the server gives up a call; 0: none
   * @param timeout ms after which a connection is given up on which a call gets no answer: the network swallows
   * everything. No keepalive would notice, since none is sent while something is unanswered, and TCP itself goes on for
   * a quarter of an hour. Where the call only waits for a lock, the server says so before, by the deadline. Undefined:
   * the pool is the caller's, neither to judge nor to end
   */
  constructor(pool: PgPool, deadline = 0, timeout?: number) {
    this.#pool = pool
    this.#deadline = deadline
    this.#timeout = timeout
  }

  call(statement: string, values: readonly unknown[]): Promise<Cells[]> {
    return this.#query((client) =>
      this.#isDirect(client)
        ? { name: nameOf(statement), text: statement, values: [...values] }
        : { text: scriptOf(statement, values, this.#deadline) },
    )
  }

  run(script: string): Promise<Cells[]> {
    return this.#query(() => ({ text: script }))
  }

  async #query(statementFor: (client: PgClient) => PgStatement): Promise<Cells[]> {
    const client = await this.#pool.connect()
    // The query rejects; an error that nobody hears ends the process.
    client.on('error', ignore)
    let failed = true
    try {
      const answer = await client.query({ ...statementFor(client), ...AS_SENT, query_timeout: this.#timeout })
      failed = false
      return cellsOf(answer)
    } finally {
      client.removeListener('error', ignore)
      client.release(failed)
    }
  }

  async begin(mode: string): Promise<Session> {
    const client = await this.#pool.connect()
    return pgSession(client, {
      mode,
      settings: this.#isDirect(client) ? sessionSettings(this.#deadline) : '',
      timeout: this.#timeout,
      alive: () => this.#alive(client),
    })
  }

  #isDirect(client: PgClient): boolean {
    return this.#pool.isDirect?.(client) === true
  }

  async #alive(client: PgClient): Promise<boolean> {
    try {
      const [row] = await this.run(
        `select state from pg_catalog.pg_stat_activity where pid = ${Number(client.processID)}`,
      )
      // A pooler's numbers mean nothing to the server; but it has answered.
      return !this.#isDirect(client) || row?.[0] === 'active'
    } catch (error) {
      return !isLost(error)
    }
  }

  async listen(channel: string, heard: (payload: string) => void, ready: () => void): Promise<void> {
    const client = await this.#pool.connect()
    if (this.#ended) return client.release()
    const over = new AbortController()
    this.#listener = over
    // Close it now: the pool's end waits for all sockets, and this one does not keep the process alive meanwhile.
    over.signal.addEventListener('abort', () => client.release(true))
    client.on('error', () => over.abort())
    client.on('end', () => over.abort())
    client.on('notification', ({ payload }: { payload?: string }) => heard(payload ?? ''))
    // Bells hold no process.
    client.unref?.()
    const listen = { text: `listen ${channel}`, query_timeout: this.#timeout }
    try {
      await client.query(listen)
      ready()
      // A connection on which nothing comes is no different from one that is dead. To listen once more changes nothing.
      for (;;) {
        await sleep(Math.min(HEARTBEAT, this.#timeout ?? HEARTBEAT), undefined, { ref: false, signal: over.signal })
        await client.query(listen)
      }
    } finally {
      over.abort()
    }
  }

  async pooled(): Promise<boolean> {
    let ours: number | null | undefined
    const [row] = await this.#query(({ processID }) => {
      ours = processID
      return { text: 'select pg_catalog.pg_backend_pid()' }
    })
    return Number(row?.[0]) !== ours
  }

  async end(): Promise<void> {
    this.#ended = true
    this.#listener?.abort()
    if (this.#timeout !== undefined) await this.#pool.end()
  }
}

/** A statement is prepared once per connection, under the name of the function that it calls. */
const nameOf = (statement: string): string => statement.slice(statement.indexOf('from ') + 5, statement.indexOf('('))

function ignore(): void {}
