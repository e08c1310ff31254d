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
  if (typeof replica === 'string' || replica instanceof URL) return pgLink(poolAt(replica), true, lost)
  if (isPostgresJs(replica)) return postgresJsLink(new PostgresJs(replica))
  if (isPgPool(replica) && replica instanceof EventEmitter) return pgLink(async () => replica, false, lost)
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

function pgLink(open: () => Promise<EmittingPool>, own: boolean, lost: () => void): ReplicaLink {
  const known = new WeakSet<PgClient>()
  let pool: Promise<EmittingPool> | undefined
  /** The connection for questions. */
  let asker: Promise<PgClient> | undefined

  function acquired(client: PgClient): void {
    if (known.has(client)) return
    known.add(client)
    // Not 'end': the pool ends connections that are idle, too. Without a listener the error would end the process.
    client.on('error', lost)
  }

  function connected(): Promise<EmittingPool> {
    if (pool === undefined) {
      pool = open().then((opened) => opened.on('acquire', acquired))
      pool.catch(() => {
        pool = undefined
      })
    }
    return pool
  }

  function letGo(client: Promise<PgClient>): void {
    if (asker !== client) return
    asker = undefined
    client.then((connection) => connection.release(true), ignore)
  }

  return {
    async ask(text, params) {
      asker ??= connected().then((opened) => opened.connect())
      const asked = asker
      asked.catch(() => letGo(asked))
      try {
        return rowsOf(await (await asked).query({ text, values: [...params], queryMode: 'extended' }))
      } catch (error) {
        if (isLost(error)) letGo(asked)
        throw error
      }
    },
    read: async (text, params) => readOnly(new Pg(await connected()), text, params),
    drop() {
      if (asker !== undefined) letGo(asker)
    },
    async end() {
      if (asker !== undefined) letGo(asker)
      const opened = await pool?.catch(ignore)
      opened?.off('acquire', acquired)
      if (own) await opened?.end()
    },
  }
}

function postgresJsLink(database: PostgresJs): ReplicaLink {
  /** The last question is not answered yet. */
  let asking = false
  return {
    async ask(text, params) {
      // A connection that hangs cannot be taken from postgres.js; it must not take the others along.
      if (asking) throw new MillpondError('StoreUnavailable', 'the read replica has yet to answer the last question')
      asking = true
      try {
        return await database.run(inlined(text, params))
      } finally {
        asking = false
      }
    },
    read: (text, params) => readOnly(database, text, params),
    drop: ignore,
    end: async () => {},
  }
}

function ignore(): undefined {}
