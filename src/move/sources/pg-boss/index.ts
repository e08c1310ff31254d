/**
 * The jobs of pg-boss, version 10 or later: created, retried and failed ones. `pgboss+postgres://…/db?schema=pgboss`.
 *
 * A batch is a transaction that locks its jobs' rows, as pg-boss's own workers do, which skip locked rows. It deletes them when the
 * target has them. If the move is killed, the server ends the transaction, and the jobs are as they were.
 */
import type { Pool, PoolClient } from 'pg'
import { loadPg } from '../../../stores/driver.ts'
import { MillpondError } from '../../../values/errors/errors.ts'
import { safeText } from '../../../values/errors/safe-error.ts'
import type { JobRecord } from '../../../values/jobs/records.ts'
import { isQueueName } from '../../../values/settings/names.ts'
import { retried } from '../../retry.ts'
import type { Batch, Counts, OpenRival, QueueCounts, Source } from '../../source.ts'
import { type Row, recordOf } from './record.ts'

/** Jobs of a batch. */
const BATCH = 1000
/** One batch is taken while others are stored and removed; and what counts. */
const CONNECTIONS = 4
const STATES = ['created', 'retry', 'failed']

export const open: OpenRival = async (text, onTrouble, stop) => {
  const { Pool } = await loadPg()
  const url = new URL(text.replace(/^pgboss\+/, ''))
  const schema = url.searchParams.get('schema') ?? 'pgboss'
  url.searchParams.delete('schema')
  if (!/^[A-Za-z_]\w{0,62}$/.test(schema))
    throw new MillpondError('InvalidOption', 'schema is the name of a schema of pg-boss')
  const pool = new Pool({ connectionString: String(url), max: CONNECTIONS, application_name: 'millpond move' })
  // A lost connection fails its call, too.
  pool.on('error', () => {})
  const where = `${url.host}${url.pathname}`
  const answered = <T>(call: () => Promise<T>) =>
    retried(() => call().catch((error: unknown) => Promise.reject(toMillpondError(error, where))), onTrouble, stop)
  const source = new PgBoss(pool, schema, where, answered)
  try {
    await source.check()
  } catch (error) {
    await pool.end()
    throw error
  }
  return source
}

/** An error of the server has a severity; others are of the connection. */
function toMillpondError(error: unknown, where: string): MillpondError {
  if (error instanceof MillpondError) return error
  const code =
    typeof error === 'object' && error !== null && 'severity' in error ? String(Reflect.get(error, 'code')) : ''
  // 08: connection, 53: resources, 57: shutting down.
  const isPassing = code === '' || /^(08|53|57)/.test(code)
  const message = `PostgreSQL with pg-boss at ${where}: ${safeText(error)}`
  return new MillpondError(isPassing ? 'StoreUnavailable' : 'StoreFailed', message, { cause: error })
}

type Answered = <T>(call: () => Promise<T>) => Promise<T>

class PgBoss implements Source {
  readonly name = 'pg-boss'
  readonly #pool: Pool
  readonly #schema: string
  readonly #where: string
  readonly #answered: Answered
  /** Of the batches that are neither removed nor put back. */
  readonly #held = new Set<PoolClient>()
  /** Columns of the jobs, which differ between versions. */
  #columns: ReadonlySet<string> = new Set()

  constructor(pool: Pool, schema: string, where: string, answered: Answered) {
    this.#pool = pool
    this.#schema = schema
    this.#where = where
    this.#answered = answered
  }

  /** @throws NotSupported: its tables are not there, or older ones */
  async check(): Promise<void> {
    const sql = `select column_name as name from information_schema.columns where table_schema = $1 and table_name = 'job'`
    const { rows } = await this.#answered(() => this.#pool.query<{ name: string }>(sql, [this.#schema]))
    this.#columns = new Set(rows.map(({ name }) => name))
    if (this.#columns.has('retry_limit') && this.#columns.has('policy')) return
    throw new MillpondError('NotSupported', `the schema ${this.#schema} has no tables of pg-boss 10 or later`)
  }

  async counts(): Promise<QueueCounts[]> {
    const sql = `
      select name, case when state in ('created', 'retry') and start_after > now() then 'scheduled'
        when state in ('created', 'retry') then 'waiting' when state = 'active' then 'running' else 'dead' end as state, count(*)::int
      from ${this.#schema}.job where state in ('created', 'retry', 'active', 'failed') ${this.#unblocked} group by 1, 2 order by 1`
    const { rows } = await this.#answered(() =>
      this.#pool.query<{ name: string; state: keyof Counts; count: number }>(sql),
    )
    const queues = new Map<string, Counts>()
    for (const { name, state, count } of rows) {
      // Its own queues, such as those of its clock.
      if (!isQueueName(name) || name.startsWith('__pgboss__')) continue
      const counts = queues.get(name) ?? {
        blocked: 0,
        scheduled: 0,
        waiting: 0,
        running: 0,
        done: 0,
        dead: 0,
        cancelled: 0,
      }
      counts[state] += count
      queues.set(name, counts)
    }
    return [...queues].map(([queue, counts]) => ({ queue, counts }))
  }

  /** What its queues are told is with each of their jobs. */
  async settings(): Promise<null> {
    return null
  }

  /** None: a transaction that ends takes nothing with it. */
  async *leftovers(): AsyncIterable<Batch> {}

  async *pass(queue: string): AsyncIterable<Batch> {
    const left: string[] = []
    for (const state of STATES) {
      for (;;) {
        const batch = await this.#answered(() => this.#take(queue, state, left))
        if (batch === undefined) break
        yield batch
      }
    }
  }

  async runsOlder(queue: string, time: number): Promise<boolean> {
    const sql = `select 1 from ${this.#schema}.job where name = $1 and state = 'active' and created_on < to_timestamp($2) limit 1`
    const { rows } = await this.#answered(() => this.#pool.query(sql, [queue, time / 1000]))
    return rows.length > 0
  }

  async tend(): Promise<void> {}

  /** After an error, the last batch is still locked: as after a kill, the server ends its transaction with the connection. */
  async close(): Promise<void> {
    for (const client of this.#held) client.release(true)
    await this.#pool.end()
  }

  /** Those that wait for other jobs stay. */
  get #unblocked(): string {
    return this.#columns.has('blocked') ? 'and not blocked' : ''
  }

  #select(): string {
    const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint::float8`
    const orNull = (column: string, type: string) => (this.#columns.has(column) ? column : `null::${type} as ${column}`)
    const expires = this.#columns.has('expire_seconds')
      ? 'expire_seconds'
      : `${this.#columns.has('expire_in') ? 'extract(epoch from expire_in)::int' : 'null::int'} as expire_seconds`
    return `
      select id::text, name, state::text, priority, retry_limit, retry_count, policy, singleton_key, ${orNull('group_id', 'text')},
        ${expires}, ${ms('created_on')} as created, ${ms('start_after')} as due, ${ms('started_on')} as started,
        ${ms('completed_on')} as completed, start_after <= now() as is_due, data::text, output::text
      from ${this.#schema}.job`
  }

  /** @param left ids of jobs that the target did not take in this pass */
  async #take(queue: string, state: string, left: string[]): Promise<Batch | undefined> {
    const client = await this.#pool.connect()
    try {
      await client.query('begin')
      const sql = `${this.#select()}
        where name = $1 and state = $2::${this.#schema}.job_state and id::text <> all ($3) ${this.#unblocked}
        order by priority desc, created_on, id limit ${BATCH} for update skip locked`
      const { rows } = await client.query<Row>(sql, [queue, state, left])
      if (rows.length > 0) return this.#batch(client, queue, rows, left)
      await client.query('rollback')
    } catch (error) {
      client.release(true)
      throw error
    }
    client.release()
    return undefined
  }

  #batch(client: PoolClient, queue: string, rows: readonly Row[], left: string[]): Batch {
    const records = rows.map((row) => recordOf(row, this.#where))
    const rowOf = new Map(records.map(({ id }, index) => [id, rows[index]?.id ?? '']))
    const idsOf = (some: readonly JobRecord[]) => some.map(({ id }) => rowOf.get(id) ?? '')
    const remove = `delete from ${this.#schema}.job where name = $1 and state in ('created', 'retry', 'failed') and id::text = any ($2)`
    let held: PoolClient | undefined = client
    this.#held.add(client)
    const end = async (how: 'commit' | 'rollback', ids: string[]) => {
      const own = held
      held = undefined
      if (own === undefined) return
      this.#held.delete(own)
      try {
        if (ids.length > 0) await own.query(remove, [queue, ids])
        await own.query(how)
      } catch (error) {
        own.release(true)
        throw error
      }
      own.release()
    }
    return {
      records,
      renewAt: Number.POSITIVE_INFINITY,
      renew: async () => {},
      remove: (some) =>
        this.#answered(async () => {
          if (held !== undefined) return end('commit', idsOf(some))
          // The connection was lost, and the locks with it. A job that a worker has taken since stays there.
          await this.#pool.query(remove, [queue, idsOf(some)])
        }),
      putBack: async (some) => {
        left.push(...idsOf(some))
        await end('rollback', [])
      },
      // The locks are this move's alone.
      abandon: () => end('rollback', []),
    }
  }
}
