/**
 * Connections to a read replica: our own, or those of a pg Pool or a postgres.js `sql` of the caller's.
 *
 * With pg the questions have a connection of their own, so that no slow read of a handler holds one up. If it is lost,
 * the server or the network has failed, which is told at once. With postgres.js they share the pool, and a lost
 * connection is noticed by the call that fails.
 */
import { hasTag } from '../../../values/runtime/realms.ts'
import { invalid } from '../../options.ts'
import { isLost } from '../errors.ts'
import { settingsOf } from '../settings.ts'
import { type Cells, type Query, readOnly } from './database.ts'
import { Pg } from './pg.ts'
import { AS_SENT, cellsOf, isPgPool, type PgClient, type PgPool } from './pg-client.ts'
import { openPool } from './pool.ts'
import { isPostgresJs, PostgresJs } from './postgresjs.ts'
import { inlined } from './script.ts'

export interface ReplicaLink {
  /** For our questions. */
  ask: (text: string, params: readonly unknown[]) => Promise<Cells[]>
  /** For the handlers' reads. */
  read: Query
  /** Lets go of the connection of a question that is not answered. */
  drop(): void
  end(): Promise<void>
}

/** How long a new connection may take, in milliseconds: longer, and the handlers read the primary. */
export const PATIENCE = 2000

/**
 * @param replica a URL (string or URL), a pg Pool, or a postgres.js `sql`
 * @param lost told when the server or the network has ended a connection
 * @throws InvalidOption
 */
export function openLink(replica: unknown, lost: () => void): ReplicaLink {
  if (isPostgresJs(replica)) {
    const database = new PostgresJs(replica)
    return {
      ask: (text, params) => database.run(inlined(text, params)),
      read: (text, params) => readOnly(database, text, params),
      drop: ignore,
      end: async () => {},
    }
  }
  if (isPgPool(replica)) return pgLink(Promise.resolve(replica), false, lost)
  if (!((typeof replica === 'string' || hasTag(replica, 'URL')) && /^postgres(ql)?:/i.test(String(replica)))) {
    invalid('replica takes a URL postgres://user:password@host:5432/database, a pg Pool or a postgres.js sql')
  }
  const settings = settingsOf(String(replica), {})
  return pgLink(openPool(settings, { max: settings.connections, patience: PATIENCE }), true, lost)
}

function pgLink(pool: Promise<PgPool>, own: boolean, lost: () => void): ReplicaLink {
  // A client that cannot be loaded is told of by the first call.
  pool.catch(ignore)
  /** The connection for questions. */
  let asker: Promise<PgClient> | undefined

  async function connect(): Promise<PgClient> {
    const client = await (await pool).connect()
    // Without a listener the error would end the process.
    client.on('error', lost)
    return client
  }

  function letGo(client: Promise<PgClient> | undefined): void {
    if (asker === client) asker = undefined
    client?.then((connection) => connection.release(true), ignore)
  }

  return {
    async ask(text, params) {
      asker ??= connect()
      const asked = asker
      asked.catch(() => letGo(asked))
      try {
        return cellsOf(await (await asked).query({ text, values: [...params], queryMode: 'extended', ...AS_SENT }))
      } catch (error) {
        if (asker === asked && isLost(error)) letGo(asked)
        throw error
      }
    },
    read: async (text, params) => readOnly(new Pg(await pool), text, params),
    drop: () => letGo(asker),
    async end() {
      letGo(asker)
      if (own) await pool.then((opened) => opened.end(), ignore)
    },
  }
}

function ignore(): undefined {}
