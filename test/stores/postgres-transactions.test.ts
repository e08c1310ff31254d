/** Pushes inside the caller's own transaction, with every client that people have, and handlers' transactions. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import type { Store } from '../../src/store.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { job, openPostgres, server, urlOf } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const mismatch = (error: unknown) => isMillpondError(error, 'TransactionMismatch')

/** Runs the body in a transaction of some client's, and commits unless it throws. */
type Transact = (body: (tx: unknown) => Promise<void>) => Promise<unknown>

class Stop extends Error {}

describe('push inside the caller’s transaction', { skip }, () => {
  let store: Store
  let dispose: () => Promise<void>
  let sql: postgres.Sql
  let pool: pg.Pool
  let kysely: Kysely<object>

  before(async () => {
    const opened = await openPostgres(urlOf('postgres'))
    store = opened.store
    dispose = opened.dispose
    sql = postgres(urlOf('postgres'), { max: 2, onnotice: () => {} })
    pool = new pg.Pool({ connectionString: urlOf('postgres'), max: 2 })
    kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
  })
  after(async () => {
    await sql.end()
    await pool.end()
    await dispose()
  })

  const inPg: Transact = async (body) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await body(client)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  const clients: Record<string, Transact> = {
    'postgres.js': (body) => sql.begin(body),
    pg: inPg,
    Kysely: (body) => kysely.transaction().execute(body),
    'Drizzle on postgres.js': (body) => drizzlePostgresJs(sql).transaction(body),
    'Drizzle on pg': (body) => drizzlePg(pool).transaction(body),
    'a function that answers rows': (body) =>
      sql.begin((tx) => body((text: string, params: postgres.ParameterOrJSON<never>[]) => tx.unsafe(text, params))),
    'a function that answers { rows }': (body) =>
      inPg((client) => body((text: string, params: unknown[]) => (client as pg.PoolClient).query(text, params))),
  }

  for (const [name, transact] of Object.entries(clients)) {
    test(`${name}: there when it commits, not before, and not when it rolls back`, async () => {
      const [one, two, lost] = [job(), job({ key: `key of ${name}`, priority: 9 }), job()]
      await transact(async (tx) => {
        const outcomes = await store.transactions?.push({ tx, jobs: [one, two] })
        assert.deepEqual(outcomes, [
          { status: 'pushed', id: one.id },
          { status: 'pushed', id: two.id },
        ])
        assert.deepEqual(await store.operations.find({ ids: [one.id] }), [null], 'nobody sees it before the commit')
      })
      const stopped = transact(async (tx) => {
        await store.transactions?.push({ tx, jobs: [lost] })
        throw new Stop()
      })
      await assert.rejects(stopped, Stop)
      const [first, second, third] = await store.operations.find({ ids: [one.id, two.id, lost.id] })
      assert.deepEqual([first?.state, second?.state, second?.priority, third], ['waiting', 'waiting', 9, null])
    })
  }

  test('what is no open transaction on this database is refused, and stores nothing', async () => {
    const before = (await store.operations.stats({}))[0]?.counts
    const idle = await pool.connect()
    const wrong: Record<string, unknown> = {
      nothing: {},
      text: 'tx',
      number: 5,
      'a function that does nothing': () => {},
      'the sql itself': sql,
      'the pool': pool,
      'a client without begin': idle,
      'Kysely without transaction': kysely,
      'Drizzle without transaction': drizzlePg(pool),
    }
    try {
      for (const [name, tx] of Object.entries(wrong)) {
        await assert.rejects(async () => store.transactions?.push({ tx, jobs: [job()] }), mismatch, name)
      }
    } finally {
      idle.release()
    }
    assert.deepEqual((await store.operations.stats({}))[0]?.counts, before)
  })

  test('a transaction on a store of the same name elsewhere is refused, and goes on', async () => {
    const other = await openPostgres(urlOf('postgres'))
    const admin = postgres(urlOf('postgres'), { max: 1, onnotice: () => {} })
    try {
      // The schema of the one in place of the other's: as in another database.
      await admin.begin(async (tx) => {
        await tx.unsafe(`drop schema ${other.schema} cascade`)
        await assert.rejects(async () => other.store.transactions?.push({ tx, jobs: [job()] }), mismatch)
        await tx`select 1`
      })
    } finally {
      await admin.end()
      await other.dispose()
    }
  })
})

describe('handlers’ transactions', { skip }, () => {
  let opened: Awaited<ReturnType<typeof openPostgres>>
  before(async () => {
    opened = await openPostgres(urlOf('postgres'), { connections: 3 })
    await server(`create table ${opened.schema}.effects (text text)`)
  })
  after(() => opened.dispose())

  const effects = async () =>
    (await server(`select text from ${opened.schema}.effects order by text`)).map(({ text }) => text)
  const begin = () => {
    const transaction = opened.store.transactions?.begin('q')
    assert.ok(transaction)
    return transaction
  }
  const claimed = async () => {
    await opened.store.operations.push({ jobs: [job()] })
    const { jobs } = await opened.store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })
    assert.ok(jobs[0])
    return jobs[0]
  }

  test('effects and completion commit together, and a stale completion undoes them', async () => {
    const { id, fence } = await claimed()
    const late = begin()
    await late.query(`insert into ${opened.schema}.effects values ($1)`, ['late'])
    const good = begin()
    const insert = good.query(`insert into ${opened.schema}.effects values ($1)`, ['good'])
    // With three connections a handler has the only one that handlers may hold: the next waits for its turn.
    assert.deepEqual(await late.complete({ queue: 'emails', items: [{ id, fence: fence + 1, result: null }] }), [
      'stale',
    ])
    await insert
    assert.deepEqual(await good.complete({ queue: 'emails', items: [{ id, fence, result: null }] }), ['ok'])
    assert.deepEqual(await effects(), ['good'])
    assert.equal((await opened.store.operations.find({ ids: [id] }))[0]?.state, 'done')
  })

  test('a rollback, and a query that failed, leave nothing behind, and the connection usable', async () => {
    const { id, fence } = await claimed()
    const undone = begin()
    await undone.query(`insert into ${opened.schema}.effects values ('undone')`)
    await undone.rollback()
    const failed = begin()
    await failed.query(`insert into ${opened.schema}.effects values ('failed')`)
    await assert.rejects(failed.query('select no_such_column'))
    await assert.rejects(failed.complete({ queue: 'emails', items: [{ id, fence, result: null }] }), (error) =>
      isMillpondError(error),
    )
    assert.deepEqual(await begin().complete({ queue: 'emails', items: [{ id, fence, result: null }] }), ['ok'])
    assert.ok(!(await effects()).some((text) => text === 'undone' || text === 'failed'))
  })

  test('what ends a transaction is refused, savepoints are not', async () => {
    const transaction = begin()
    for (const text of ['commit', 'ROLLBACK', '/* x */ begin', '-- x\nend', 'start transaction', 'abort']) {
      await assert.rejects(transaction.query(text), (error) => isMillpondError(error, 'InvalidOption'), text)
    }
    await transaction.query('savepoint here')
    await transaction.query('rollback to savepoint here')
    await assert.rejects(transaction.query('select 1; commit'), 'one statement at a time')
    await transaction.rollback()
    await assert.rejects(transaction.query('select 1'), mismatch)
  })

  test('a push in the handler’s transaction exists when that commits', async () => {
    const { id, fence } = await claimed()
    const next = job({ queue: 'next' })
    const transaction = begin()
    await opened.store.transactions?.push({ tx: transaction.query, jobs: [next] })
    assert.deepEqual(await opened.store.operations.find({ ids: [next.id] }), [null])
    assert.deepEqual(await transaction.complete({ queue: 'emails', items: [{ id, fence, result: null }] }), ['ok'])
    assert.equal((await opened.store.operations.find({ ids: [next.id] }))[0]?.state, 'waiting')
  })
})

test('what a handler sets on its connection does not outlive its transaction', { skip }, async () => {
  const { store, schema, dispose } = await openPostgres(urlOf('postgres'), { connections: 3 })
  try {
    // Every free connection has prepared the statements of a claim.
    const claims = () =>
      Promise.all(
        Array.from({ length: 6 }, () =>
          store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 }),
        ),
      )
    await claims()
    await store.operations.push({ jobs: [job()] })
    const [held] = (await claims()).flatMap(({ jobs }) => jobs)
    assert.ok(held)
    const transaction = store.transactions?.begin('q')
    assert.ok(transaction)
    await transaction.query(`set default_transaction_isolation = 'serializable'`)
    await transaction.query('set default_transaction_read_only = on')
    await transaction.query('set statement_timeout = 500')
    await transaction.query('deallocate all')
    assert.deepEqual(await transaction.complete({ queue: 'emails', items: [{ ...held, result: null }] }), ['ok'])
    for (let n = 0; n < 5; n++) {
      await store.operations.push({ jobs: [job()] })
      assert.equal((await claims()).flatMap(({ jobs }) => jobs).length, 1)
      await store.operations.sweep({ limit: 10 })
    }
    // The calls of all connections wait for longer than the handler's deadline was.
    const other = new pg.Client({ connectionString: urlOf('postgres') })
    await other.connect()
    try {
      await other.query(`begin; lock table ${schema}.waiting`)
      const waiting = claims()
      const long = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%'
        and clock_timestamp() - query_start > interval '600 ms'`
      await until(async () => (await server(long, [schema])).length > 1, 'calls that have waited')
      await other.query('rollback')
      await waiting
    } finally {
      await other.end()
    }
  } finally {
    await dispose()
  }
})
