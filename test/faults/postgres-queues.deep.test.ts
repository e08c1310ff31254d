/** The PostgreSQL store with thousands of queues: what looks at all of them costs no more for each. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { missingReason } from '../servers/shared.ts'
import { dropSchema, job, newSchema, server, urlOf } from '../stores/postgres-fixture.ts'
import { until } from '../support/until.ts'

const QUEUES = 1000
const CALLS = 20

describe('a thousand queues', { skip: missingReason('postgres') }, () => {
  const schema = newSchema()
  after(() => dropSchema(schema))

  /** With a store whose connections have reported their scans afterwards. */
  async function withOpen(body: (store: Store) => Promise<void>): Promise<void> {
    const url = new URL(urlOf('postgres'))
    url.searchParams.set('application_name', schema)
    const store = await open(url, { schema })
    await body(store).finally(() => store.close())
    await until(
      async () => (await server('select 1 from pg_stat_activity where application_name = $1', [schema])).length === 0,
      'the last process to go',
    )
  }

  async function scans(): Promise<number> {
    const [row] = await server(
      `select coalesce(sum(idx_scan + seq_scan), 0) as scans from pg_stat_user_tables where schemaname = $1`,
      [schema],
    )
    return Number(row?.scans)
  }

  /** Scans of tables and indexes for one call. */
  async function scansOf(call: (store: Store) => Promise<unknown>): Promise<number> {
    const before = await scans()
    await withOpen(async (store) => {
      for (let n = 0; n < CALLS; n++) await call(store)
    })
    return ((await scans()) - before) / CALLS
  }

  test('with something kept and nothing due: a sweep and stats', async () => {
    await withOpen(async (store) => {
      const jobs = Array.from({ length: QUEUES }, (_, at) => job({ queue: `q${at}` }))
      await store.operations.push({ jobs })
      await store.operations.cancel({ ids: jobs.map(({ id }) => id) })
      for (let n = 0; n < 3; n++) await store.operations.sweep({ limit: 1000 })
      const slices = jobs.map(({ queue }) => ({ queue, priority: 4, metric: 'run' as const, buckets: { 3: 1 } }))
      await store.operations.record({ slices })
      const stats = await store.operations.stats({ minutes: 5 })
      assert.equal(stats.length, QUEUES)
      assert.ok(stats.every(({ counts, histograms }) => counts.cancelled === 1 && histograms.length === 1))
    })
    for (const [name, call] of [
      ['sweep', (store: Store) => store.operations.sweep({ limit: 1000 })],
      ['stats', (store: Store) => store.operations.stats({ minutes: 5 })],
    ] as const) {
      const each = await scansOf(call)
      assert.ok(each < 100, `${each} scans for ${name}`)
    }
  })

  test('claims from a long line read what they give, also when its marks move', async () => {
    const JOBS = 50_000
    const entriesRead = async () => {
      const [row] = await server(
        `select idx_tup_read as entries from pg_stat_user_indexes where schemaname = $1 and indexrelname = 'waiting_ready'`,
        [schema],
      )
      return Number(row?.entries)
    }
    await withOpen(async (store) => {
      for (let n = 0; n < JOBS; n += 5000)
        await store.operations.push({ jobs: Array.from({ length: 5000 }, () => job({ queue: 'long' })) })
    })
    const before = await entriesRead()
    await withOpen(async (store) => {
      // The marks move at every 4,096th job.
      for (let n = 0; n < 10_000; n += 500) {
        await store.operations.claim({ queue: 'long', worker: 'w', limit: 500, lease: null, minPriority: 0 })
      }
    })
    let read = 0
    // Before version 15, counts arrive a moment after their connection has ended.
    await until(async () => {
      read = (await entriesRead()) - before
      return read >= 10_000
    }, 'the claims are counted')
    assert.ok(read < JOBS, `${read} entries`)
  })

  test('watch reads those that are named', async () => {
    await withOpen(async () => {})
    const named = await server(`select ${schema}.watch('{q1,q7,"not there"}') ->> 'queue' as queue order by 1`)
    assert.deepEqual(
      named.map(({ queue }) => queue),
      ['q1', 'q7'],
    )
  })
})
