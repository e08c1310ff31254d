/** While an old transaction is open, vacuum removes nothing: operations must not step over what has died since. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { dropSchema, job, newSchema, server, urlOf } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const DEAD = 6000
const BATCH = 100

async function push(store: Store): Promise<void> {
  await store.operations.push({ jobs: Array.from({ length: BATCH }, () => job()) })
}

async function claim(store: Store) {
  const { jobs } = await store.operations.claim({ queue: 'emails', worker: 'w', limit: BATCH, lease: 60_000 })
  assert.equal(jobs.length, BATCH)
  return jobs.map((claim) => ({ id: claim.id, fence: claim.fence, claim, result: null }))
}

test('what ends claims looks each of them up, however the planner takes the table to be', { skip }, async () => {
  const url = urlOf('postgres')
  const schema = newSchema()
  /** Closing it makes the server's processes report what they have counted. */
  const withSchema = async (body: (store: Store) => Promise<void>): Promise<void> => {
    const store = await open(url, { schema })
    await body(store).finally(() => store.close())
  }
  const counted = async (figure: string, view: string): Promise<number> => {
    const [row] = await server(
      `select sum(${figure}) as sum from ${view} where schemaname = $1 and relname = 'running'`,
      [schema],
    )
    return Number(row?.sum)
  }
  const gone = (count: number) =>
    until(async () => (await counted('n_tup_del', 'pg_stat_user_tables')) === count, `${count} deletions are reported`)
  const read = () => counted('idx_tup_read', 'pg_stat_user_indexes')
  const old = new pg.Client(url)
  await old.connect()
  try {
    await old.query('begin isolation level repeatable read')
    await old.query('select 1')
    await withSchema(async (store) => {
      for (let died = 0; died < DEAD; died += BATCH) {
        await push(store)
        await store.operations.complete({ queue: 'emails', items: await claim(store) })
      }
    })
    await gone(DEAD)
    // Of thousands of rows all are dead: to the planner there are none, and any way through the index looks cheap.
    await server(`analyze ${schema}.running`)
    const before = await read()
    await withSchema(async (store) => {
      await push(store)
      await push(store)
      await store.operations.complete({ queue: 'emails', items: await claim(store) })
      await store.operations.release({ queue: 'emails', items: await claim(store) })
    })
    await gone(DEAD + 2 * BATCH)
    const entries = (await read()) - before
    assert.ok(entries < DEAD, `${entries} entries of the index were read for ${2 * BATCH} jobs`)
  } finally {
    await old.end()
    await dropSchema(schema)
  }
})

test('sweeps step over what was due, and over leases that ended, once', { skip }, async () => {
  const url = urlOf('postgres')
  const schema = newSchema()
  const clock = { now: 1_700_000_000_000 }
  const old = new pg.Client(url)
  await old.connect()
  try {
    await old.query('begin isolation level repeatable read')
    await old.query('select 1')
    const store = await open(url, { schema, clock: () => clock.now })
    for (let pushed = 0; pushed < DEAD; pushed += BATCH)
      await store.operations.push({ jobs: Array.from({ length: BATCH }, () => job({ delay: 10 })) })
    // In the very millisecond something may still become due before those that a sweep has met.
    clock.now += 11
    for (let promoted = 0; promoted < DEAD; promoted += BATCH)
      assert.equal((await store.operations.sweep({ limit: BATCH })).promoted, BATCH)
    for (let done = 0; done < DEAD; done += BATCH)
      await store.operations.complete({ queue: 'emails', items: await claim(store) })
    // The leases would end now. The first of these sweeps begins at the beginning.
    clock.now += 60_001
    for (let n = 0; n < DEAD / BATCH; n++) await store.operations.sweep({ limit: BATCH })
    // Closing it makes the server's processes report what they have counted.
    await store.close()
    const figures = async () => {
      const [row] = await server(
        `select sum(idx_tup_read) filter (where indexrelname in ('waiting_due', 'waiting_scheduled', 'running_lease', 'moves_id'))::int as entries,
          (select n_tup_del from pg_stat_user_tables where schemaname = $1 and relname = 'running')::int as gone
        from pg_stat_user_indexes where schemaname = $1`,
        [schema],
      )
      return { entries: Number(row?.entries), gone: Number(row?.gone) }
    }
    await until(async () => (await figures()).gone === DEAD, `${DEAD} deletions are reported`)
    const { entries } = await figures()
    assert.ok(entries < 10 * DEAD, `${entries} entries of indexes were read for ${DEAD} jobs`)
  } finally {
    await old.end()
    await dropSchema(schema)
  }
})
