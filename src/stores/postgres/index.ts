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
import '../../values/runtime.ts'
import type { OpenStore, Store } from '../../store.ts'
import { MillpondError } from '../../values/errors.ts'
import { Calls } from './connection/calls.ts'
import type { Database } from './connection/database.ts'
import { migrate } from './connection/migrate.ts'
import { Pg } from './connection/pg.ts'
import { isPgPool } from './connection/pg-client.ts'
import { openPool } from './connection/pool.ts'
import { isPostgresJs, PostgresJs } from './connection/postgresjs.ts'
import { sessionSettings } from './connection/script.ts'
import { toMillpondError } from './errors.ts'
import { type Context, Notifier } from './notifier.ts'
import { cancel } from './operations/cancel.ts'
import { claim } from './operations/claim.ts'
import { configure, settings as given, limitGroup } from './operations/configure.ts'
import { complete, fail, release } from './operations/end.ts'
import { extend } from './operations/extend.ts'
import { ahead, find, groups, list } from './operations/find.ts'
import { push } from './operations/push.ts'
import { requeue } from './operations/requeue.ts'
import { figures } from './operations/stats.ts'
import { sweep } from './operations/sweep.ts'
import { replicasOf } from './replicas.ts'
import { type Settings, settingsOf } from './settings.ts'
import { transactionsOf } from './transactions.ts'

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
  const calls = new Calls(database, settings.schema, settings.deadline, clock)
  const notifier = new Notifier(calls, polling)
  const context = { calls, notifier }
  /** Operations take the context first. */
  const operation = <In extends unknown[], Out>(run: (context: Context, ...given: In) => Promise<Out>) =>
    calls.operation((...given: In) => run(context, ...given))
  let closing: Promise<void> | undefined
  async function close(): Promise<void> {
    notifier.close()
    await calls.close()
    await database.end()
  }

  return {
    name: 'postgres',
    capabilities: { durable: true, shared: true, transactions: true, replicas: true, limits: true },
    // One connection listens, and one at least stays for the store's own calls.
    transactions: transactionsOf(context, settings.connections - 2, install),
    replicas: replicasOf(database, settings),
    admin: {
      settings: operation(given),
      list: operation(list),
      requeue: operation(requeue),
      groups: operation(groups),
      ahead: operation(ahead),
    },
    configure: operation(configure),
    limitGroup: operation(limitGroup),
    push: calls.operation(push(context)),
    claim: operation(claim),
    complete: operation(complete),
    fail: operation(fail),
    release: operation(release),
    extend: operation(extend),
    cancel: operation(cancel),
    sweep: calls.operation(sweep(context)),
    find: calls.operation(find(context)),
    ...figures(context),
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
