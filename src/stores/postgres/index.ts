/**
 * The PostgreSQL store: PostgreSQL 13 or later, also behind PgBouncer in transaction mode. Its tables and functions live in a
 * schema of their own in the application's database; see `docs/postgres.md`.
 *
 * URL: `postgres://user:password@host:5432/database`. Options, in the URL's query or as the second argument:
 * - `schema` (`millpond`)
 * - `connections` (5): the most that this pond opens, 3 to 10
 * - `listen` (`auto`): `on` or `off`; `auto` listens unless a pooler stands between. `pgbouncer=1` is `listen=off`
 * - `poll` (100): ms between looks where it does not listen
 * - `timeout` (20,000): ms after which a connection of ours is given up on which a call gets no answer
 * - `client`, second argument only: an open postgres.js `sql` or `pg` Pool to use instead of connections of our own
 *
 * The path of a call: operations → connection/calls (retries, errors) → connection/database (the client) → the SQL of contract/postgres/.
 */
import '../../values/runtime/runtime.ts'
import type { Capabilities, OpenStore, Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { Database } from './connection/database.ts'
import { migrate } from './connection/migrate.ts'
import { Pg } from './connection/pg.ts'
import { isPgPool } from './connection/pg-client.ts'
import { openPool } from './connection/pool.ts'
import { isPostgresJs, PostgresJs } from './connection/postgresjs.ts'
import { sessionSettings } from './connection/script.ts'
import { StoreContext } from './context.ts'
import { toMillpondError } from './errors.ts'
import { operationsOf } from './operations/index.ts'
import { replicasOf } from './replicas.ts'
import { type Settings, settingsOf } from './settings.ts'
import { transactionsOf } from './transactions.ts'

const CAPABILITIES: Capabilities = {
  durable: true,
  shared: true,
  pipelined: false,
  transactions: true,
  replicas: true,
  spill: false,
  settings: true,
  delays: true,
  priorities: true,
  keys: true,
  once: true,
  graphs: true,
  results: true,
  logs: true,
  steps: true,
  limits: true,
  rates: true,
  groups: true,
  find: true,
  lists: true,
  text: true,
  cancel: true,
  update: true,
  requeue: true,
  remove: true,
  restore: true,
  counts: true,
  histograms: true,
  workers: true,
  schedules: true,
  bounded: false,
}

/** Ms until a new connection stands, or one of the pool is free. */
const CONNECT = 10_000

/** @throws InvalidOption, StoreUnavailable, StoreBusy, StoreFull, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  const database = await connect(settings)
  try {
    const { listen, poll, schema } = settings
    const polls = listen === 'off' || (listen === 'auto' && (await database.pooled()))
    const install = await migrate(database, schema)
    return storeOf(database, settings, install, polls ? poll : undefined, options.clock)
  } catch (error) {
    await database.end().catch(() => {})
    throw toMillpondError(error)
  }
}

async function connect(settings: Settings): Promise<Database> {
  const { client, connections: max, timeout, deadline, listen, schema } = settings
  if (isPostgresJs(client)) return new PostgresJs(client, deadline)
  if (isPgPool(client)) return new Pg(client, deadline)
  if (client !== undefined) throw new MillpondError('InvalidOption', 'client takes a postgres.js sql or a pg Pool')
  const patience = Math.min(CONNECT, timeout)
  // Where LISTEN is not wanted a pooler may stand between that cannot be recognised.
  const session = listen === 'off' ? undefined : sessionSettings(deadline)
  return new Pg(await openPool(settings, { max, patience, session, schema }), deadline, timeout)
}

/** @param install see `migrate` @param polling ms between looks; undefined: it listens */
function storeOf(
  database: Database,
  settings: Settings,
  install: string,
  polling: number | undefined,
  clock: (() => number) | undefined,
): Store {
  const context = new StoreContext(database, settings, polling, clock)
  const { calls, notifier } = context
  let closing: Promise<void> | undefined
  async function close(): Promise<void> {
    notifier.close()
    await calls.close()
    await database.end()
  }

  return {
    name: 'postgres',
    capabilities: CAPABILITIES,
    operations: operationsOf(context),
    // One connection listens, and one at least stays for the store's own calls.
    transactions: transactionsOf(context, settings.connections - 2, install),
    replicas: replicasOf(database, settings),
    listen(listener) {
      calls.assertOpen()
      return notifier.listen(listener)
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}
