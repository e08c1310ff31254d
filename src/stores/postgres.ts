/**
 * The PostgreSQL store: PostgreSQL 13 or later, also behind PgBouncer in transaction mode. Its tables and functions live in a
 * schema of their own in the application's database; see `docs/postgres.md`.
 *
 * URL: `postgres://user:password@host:5432/database`. Options, in the URL's query or as the second argument:
 * - `schema` (`millpond`)
 * - `connections` (5): the most that this pond opens, 3 to 10
 * - `listen` (`auto`): `on` or `off`; `auto` listens unless a pooler stands between. `pgbouncer=1` is `listen=off`
 * - `poll` (100): ms between looks where it does not listen
 * - `client`, second argument only: an open postgres.js `sql` or `pg` Pool to use instead of connections of our own
 *
 * The path of a call: here → operations → caller (retries, errors) → database (the client) → the SQL of contract/postgres/.
 */
import '../runtime.ts'
import { MillpondError } from '../errors.ts'
import type {
  Bell,
  Capabilities,
  Claimed,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HistogramSlice,
  Hold,
  HoldOutcome,
  JobRecord,
  ListRequest,
  NewJob,
  OpenStore,
  PushOutcome,
  QueueSettings,
  QueueStats,
  Store,
  StoreAdmin,
  StoreReplicas,
  StoreTransactions,
  Swept,
} from '../store.ts'
import { Caller } from './postgres/caller.ts'
import type { Database } from './postgres/database.ts'
import { Doorbell } from './postgres/doorbell.ts'
import { toMillpondError } from './postgres/errors.ts'
import { migrate } from './postgres/migrate.ts'
import { Operations } from './postgres/operations.ts'
import { openPg, Pg } from './postgres/pg.ts'
import { isPgPool } from './postgres/pg-client.ts'
import { isPostgresJs, PostgresJs } from './postgres/postgresjs.ts'
import { PostgresReplicas } from './postgres/replica.ts'
import { type Settings, settingsOf } from './postgres/settings.ts'
import { PostgresTransactions } from './postgres/transactions.ts'

/** @throws InvalidOption, StoreUnavailable, StoreBusy, StoreFull, StoreVersion, StoreFailed */
export const open: OpenStore = async (url, options) => {
  const settings = settingsOf(url, options)
  const database = await connect(settings)
  try {
    const pooled = settings.listen === 'on' ? false : await database.pooled()
    const install = await migrate(database, settings.schema)
    const polling = settings.listen === 'off' || pooled ? settings.poll : undefined
    return new PostgresStore(database, settings, install, polling, options.clock)
  } catch (error) {
    await database.end().catch(() => {})
    throw toMillpondError(error)
  }
}

async function connect(settings: Settings): Promise<Database> {
  const { client } = settings
  if (client === undefined) return openPg(settings)
  if (isPostgresJs(client)) return new PostgresJs(client)
  if (isPgPool(client)) return new Pg(client)
  throw new MillpondError('InvalidOption', 'client takes a postgres.js sql or a pg Pool')
}

/** Of the time that we wait for an answer: after so much of it the server gives a call up. */
const SERVER_SHARE = 0.75

class PostgresStore implements Store {
  readonly name = 'postgres'
  readonly capabilities: Capabilities = { durable: true, shared: true, transactions: true, replicas: true }
  readonly transactions: StoreTransactions
  readonly replicas: StoreReplicas
  readonly admin: StoreAdmin
  readonly #database: Database
  readonly #caller: Caller
  readonly #doorbell: Doorbell
  readonly #operations: Operations
  #closing: Promise<void> | undefined

  constructor(
    database: Database,
    settings: Settings,
    install: string,
    polling: number | undefined,
    clock: (() => number) | undefined,
  ) {
    const { schema, connections, timeout } = settings
    this.#database = database
    this.replicas = new PostgresReplicas(database, settings)
    this.#caller = new Caller(database, schema, Math.ceil(timeout * SERVER_SHARE), clock)
    this.#doorbell = new Doorbell(this.#caller, polling)
    const operations = new Operations(this.#caller, this.#doorbell)
    this.#operations = operations
    // One connection listens, and one at least stays for the store's own calls.
    this.transactions = new PostgresTransactions(this.#caller, connections - 2, install, {
      pushed: (queues) => {
        for (const queue of queues) this.#doorbell.bells.ring('work', queue)
      },
      completed: (queue, id) => {
        this.#doorbell.bells.ring('finished', queue, id)
        this.#doorbell.tell('finished', queue)
      },
    })
    this.admin = {
      list: (request: ListRequest) => operations.list(request),
      requeue: (request) => operations.requeue(request),
    }
  }

  configure(settings: QueueSettings): Promise<void> {
    return this.#operations.configure(settings)
  }

  push(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    return this.#operations.push(jobs)
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.#operations.claim(request)
  }

  complete(queue: string, completions: readonly Completion[]): Promise<HoldOutcome[]> {
    return this.#operations.complete(queue, completions)
  }

  fail(queue: string, failures: readonly Failure[]): Promise<FailOutcome[]> {
    return this.#operations.fail(queue, failures)
  }

  release(queue: string, holds: readonly Hold[]): Promise<HoldOutcome[]> {
    return this.#operations.release(queue, holds)
  }

  extend(queue: string, lease: number | null, extensions: readonly Extension[]): Promise<ExtendOutcome[]> {
    return this.#operations.extend(queue, lease, extensions)
  }

  cancel(ids: readonly string[]): Promise<(FinalState | null)[]> {
    return this.#operations.cancel(ids)
  }

  sweep(limit: number): Promise<Swept> {
    return this.#operations.sweep(limit)
  }

  find(ids: readonly string[]): Promise<(JobRecord | null)[]> {
    return this.#operations.find(ids)
  }

  stats(options: { queue?: string; minutes?: number }): Promise<QueueStats[]> {
    return this.#operations.stats(options)
  }

  record(slices: readonly HistogramSlice[]): Promise<void> {
    return this.#operations.record(slices)
  }

  listen(listener: (bell: Bell) => void): () => void {
    this.#caller.assertOpen()
    return this.#doorbell.listen(listener)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#doorbell.close()
    await this.#caller.close()
    await this.#database.end()
  }
}
