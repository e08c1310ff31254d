/**
 * Pools of our own, on the servers of a URL. It may name several, as libpq takes them:
 * `postgres://one:5432,two:5432/database`. New connections go to the current one. When it cannot be reached or is
 * read-only, the next one is the current one: after a fail-over the standby that was promoted.
 */
import { loadPg } from '../../driver.ts'
import { isElsewhere } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { look } from './migrate.ts'
import { AS_SENT, cellsOf, type PgClient, type PgPool } from './pg-client.ts'

/** Ms of silence after which TCP looks whether a connection still stands. */
const KEEP_ALIVE = 15_000
/**
 * Ms after which further connections are closed that are not used: a new one costs the server a process, and the first
 * calls their plans.
 */
const KEEP_IDLE = 60_000
/** The one that listens and one for calls. */
const KEEP = 2

interface PoolOptions {
  /** Most connections. */
  max: number
  /** Ms until a new connection stands, or one of the pool is free. */
  patience: number
  /** Sent once on each connection that no pooler stands behind. */
  session?: string | undefined
  /** The store's schema, which each new connection looks at: the server behind the URL may be another one. */
  schema?: string
}

export async function openPool(
  { urls, writable, timeout }: Settings,
  { max, patience, session, schema }: PoolOptions,
): Promise<PgPool> {
  const driver = await loadPg()
  const direct = new WeakSet<PgClient>()
  let current = 0
  const options = {
    max,
    min: KEEP,
    idleTimeoutMillis: KEEP_IDLE,
    application_name: 'millpond',
    connectionTimeoutMillis: patience,
    // An open store alone keeps no process alive; calls that wait for an answer do.
    allowExitOnIdle: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE,
  }
  class Client extends driver.Client {
    constructor() {
      super({ ...options, connectionString: urls[current] })
    }
  }

  /** Rejects a connection to a server that takes no writes. */
  async function prepare(client: PgClient): Promise<void> {
    await prepareSession(client)
    const run = async (text: string) => cellsOf(await client.query({ text, ...AS_SENT, query_timeout: timeout }))
    if (schema !== undefined) await look(run, schema)
  }

  async function prepareSession(client: PgClient): Promise<void> {
    if (!writable && session === undefined) return
    // Not `transaction_read_only`, which a database or role may have set: our transactions are read-write whatever the default.
    const text = 'select pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery()'
    const [[pid, standby] = []] = cellsOf(await client.query({ text, ...AS_SENT, query_timeout: timeout }))
    if (writable && standby === 't') {
      throw Object.assign(new Error('the server takes no writes: it is a standby'), { code: '25006' })
    }
    // A pooler hands out process numbers of its own.
    if (session === undefined || Number(pid) !== client.processID) return
    await client.query({ text: session, query_timeout: timeout })
    direct.add(client)
  }

  const verify = (client: PgClient, checked: (error?: Error) => void) => {
    prepare(client).then(() => checked(), checked)
  }
  const pool = new driver.Pool({ ...options, ...{ Client, verify } })
  // A connection may be lost while nobody has it, or before its new owner can listen; the next call tells.
  pool.on('connect', (client) => client.on('error', ignore))
  pool.on('error', ignore)
  return {
    async connect() {
      for (let left = urls.length; ; left--) {
        try {
          return await pool.connect()
        } catch (error) {
          if (!isElsewhere(error)) throw error
          current = (current + 1) % urls.length
          if (left <= 1) throw error
        }
      }
    },
    end: () => pool.end(),
    isDirect: (client) => direct.has(client),
  }
}

function ignore(): void {}
