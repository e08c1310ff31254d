/**
 * Connections to a read replica: our own, or those of a pg Pool or a postgres.js `sql` of the caller's.
 *
 * With pg the questions have a connection of their own, so that no slow read of a handler holds one up, and every connection that
 * is lost is told of at once. With postgres.js they share the pool, and a lost connection is noticed by the call that fails.
 */
import { EventEmitter } from 'node:events'
import { MillpondError } from '../../../values/errors.ts'
import { isLost } from '../errors.ts'
import { type Settings, settingsOf } from '../settings.ts'
import { type Query, readOnly, rowsOf } from './database.ts'
import { Hosts } from './hosts.ts'
import { inlined } from './inline.ts'
import { Pg } from './pg.ts'
import { isPgPool, type PgClient, type PgPool } from './pg-client.ts'
import { isPostgresJs, PostgresJs } from './postgresjs.ts'

export interface ReplicaLink {
  /** For our questions. */
  ask: Query
  /** For the handlers' reads. */
  read: Query
  /** Lets go of the connection of a question that is not answered. */
  drop(): void
  end(): Promise<void>
}

type EmittingPool = PgPool & EventEmitter

/** How long a new connection may take, in milliseconds: longer, and the handlers read the primary. */
const CONNECT = 2000

/**
 * @param replica a URL (string or URL), a pg Pool, or a postgres.js `sql`
 * @param lost told when the server or the network has ended a connection
 * @throws InvalidOption
 */
export function openLink(replica: unknown, lost: () => void): ReplicaLink {
  if (typeof replica === 'string' || replica instanceof URL) return new PgLink(poolAt(replica), true, lost)
  if (isPostgresJs(replica)) return new PostgresJsLink(new PostgresJs(replica))
  if (isPgPool(replica) && replica instanceof EventEmitter) return new PgLink(async () => replica, false, lost)
  throw new MillpondError('InvalidOption', 'replica takes a postgres:// URL, a pg Pool or a postgres.js sql')
}

/** Checks the URL now, and connects when first asked. @throws InvalidOption */
function poolAt(given: string | URL): () => Promise<EmittingPool> {
  if (!/^postgres(ql)?:/i.test(String(given))) {
    throw new MillpondError('InvalidOption', 'the URL of a replica is postgres://user:password@host:5432/database')
  }
  const settings = settingsOf(given, {})
  return () => openPool(settings, settings.connections)
}

/** For reads of handlers: without a deadline for statements. */
export function openPool(settings: Settings, connections: number): Promise<EmittingPool> {
  return new Hosts(settings).openPool({
    max: connections,
    application_name: 'millpond',
    connectionTimeoutMillis: CONNECT,
    keepAlive: true,
  })
}

class PgLink implements ReplicaLink {
  readonly #open: () => Promise<EmittingPool>
  readonly #own: boolean
  readonly #lost: () => void
  readonly #known = new WeakSet<PgClient>()
  #pool: Promise<EmittingPool> | undefined
  /** The connection for questions. */
  #asker: Promise<PgClient> | undefined

  constructor(open: () => Promise<EmittingPool>, own: boolean, lost: () => void) {
    this.#open = open
    this.#own = own
    this.#lost = lost
  }

  readonly ask: Query = async (text, params) => {
    this.#asker ??= this.#connect()
    const asker = this.#asker
    try {
      const client = await asker
      return rowsOf(await client.query({ text, values: [...params], queryMode: 'extended' }))
    } catch (error) {
      if (isLost(error)) this.#letGo(asker)
      throw error
    }
  }

  readonly read: Query = async (text, params) => {
    const pool = await this.#connected()
    return readOnly(new Pg(pool), text, params)
  }

  drop(): void {
    if (this.#asker !== undefined) this.#letGo(this.#asker)
  }

  async end(): Promise<void> {
    this.drop()
    const pool = await this.#pool?.catch(() => undefined)
    pool?.off('acquire', this.#acquired)
    if (this.#own) await pool?.end()
  }

  #connected(): Promise<EmittingPool> {
    if (this.#pool === undefined) {
      this.#pool = this.#open().then((pool) => pool.on('acquire', this.#acquired))
      this.#pool.catch(() => {
        this.#pool = undefined
      })
    }
    return this.#pool
  }

  readonly #acquired = (client: PgClient): void => {
    if (this.#known.has(client)) return
    this.#known.add(client)
    // Not 'end': the pool ends connections that are idle, too. Without a listener the error would end the process.
    client.on('error', this.#lost)
  }

  #connect(): Promise<PgClient> {
    const connecting = this.#connected().then((pool) => pool.connect())
    connecting.catch(() => {
      if (this.#asker === connecting) this.#asker = undefined
    })
    return connecting
  }

  #letGo(asker: Promise<PgClient>): void {
    if (this.#asker !== asker) return
    this.#asker = undefined
    asker.then((client) => client.release(true), ignore)
  }
}

class PostgresJsLink implements ReplicaLink {
  readonly #database: PostgresJs
  readonly read: Query
  /** The last question is not answered yet. */
  #asking = false

  constructor(database: PostgresJs) {
    this.#database = database
    this.read = (text, params) => readOnly(database, text, params)
  }

  readonly ask: Query = async (text, params) => {
    // A connection that hangs cannot be taken from postgres.js; it must not take the others along.
    if (this.#asking)
      throw new MillpondError('StoreUnavailable', 'the read replica has yet to answer the last question')
    this.#asking = true
    try {
      return await this.#database.run(inlined(text, params))
    } finally {
      this.#asking = false
    }
  }

  drop(): void {}

  async end(): Promise<void> {}
}

function ignore(): void {}
