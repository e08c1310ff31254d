/** Queues that are removed on PostgreSQL, beside pushes in transactions that are not over. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job, server, urlOf, withStore } from './postgres-fixture.ts'

/** A store with a queue `emails` that has a done job, and a connection of the test's own. */
async function withQueue(check: (store: Store, schema: string, client: pg.Client) => Promise<void>): Promise<void> {
  await withStore(async (store, schema) => {
    const client = new pg.Client(urlOf('postgres'))
    await client.connect()
    try {
      await store.operations.push({ jobs: [job()] })
      const held = await claimAll(store)
      await store.operations.complete({ queue: 'emails', items: held.map((one) => ({ ...one, result: null })) })
      await check(store, schema, client)
    } finally {
      await client.end()
    }
  })
}

const push = (schema: string) => `select ${schema}.push('emails', '1') as id`
const remove = (store: Store) => store.operations.remove({ queue: 'emails', limit: 1000 })

describe('queues that are removed', { skip: missingReason('postgres') }, () => {
  test('not while a push is under way in a transaction, and its job is there once that commits', async () => {
    await withQueue(async (store, schema, client) => {
      await client.query('begin')
      const pushed = await client.query(push(schema))
      assert.deepEqual(await remove(store), { removed: 1, more: true })
      await client.query('commit')
      assert.deepEqual(
        (await claimAll(store)).map(({ id }) => id),
        [pushed.rows[0]?.id],
      )
    })
  })

  test('a push that comes during the removal waits for it, and makes the queue anew', async () => {
    await withQueue(async (store, schema, client) => {
      await client.query('begin')
      const removed = await client.query(`select removed, more from ${schema}.remove(queue => 'emails')`)
      assert.deepEqual(removed.rows, [{ removed: 1, more: false }])
      const pushing = store.operations.push({ jobs: [job()] })
      const waits = `select from pg_locks where locktype = 'advisory' and not granted and classid = hashtext('${schema}')::oid`
      await until(async () => (await server(waits)).length > 0, 'the push to wait')
      await client.query('commit')
      assert.equal((await pushing)[0]?.status, 'pushed')
      assert.equal((await claimAll(store)).length, 1)
    })
  })

  test('while others push to another queue without a pause', async () => {
    await withQueue(async (store) => {
      let isOver = false
      const pushers = Array.from({ length: 3 }, async () => {
        while (!isOver) await store.operations.push({ jobs: [job({ queue: 'others' })] })
      })
      await until(async () => !(await remove(store)).more, 'the queue to be removed').finally(() => {
        isOver = true
      })
      await Promise.all(pushers)
      assert.equal(await store.operations.settings({ queue: 'emails' }), null)
    })
  })

  test('a transaction that still sees the queue fails, and can be made again', async () => {
    for (const level of ['repeatable read', 'serializable']) {
      await withQueue(async (store, schema, client) => {
        await client.query(`begin isolation level ${level}`)
        await client.query(`select count(*) from ${schema}.queues`)
        assert.deepEqual(await remove(store), { removed: 1, more: false })
        await assert.rejects(client.query(push(schema)), { code: '40001' })
        await client.query('rollback')
        await client.query(`begin isolation level ${level}`)
        await client.query(push(schema))
        await client.query('commit')
        assert.equal((await claimAll(store)).length, 1)
      })
    }
  })

  test('nothing of it stays behind', async () => {
    await withQueue(async (store, schema) => {
      await store.operations.limitGroup({ queue: 'emails', group: 'g', limits: { running: 1, rate: null, weight: 1 } })
      await store.operations.push({
        jobs: [job({ group: 'g', key: 'k' }), job({ group: 'g' }), job({ delay: 60_000 })],
      })
      await claimAll(store)
      await store.operations.record({ slices: [{ queue: 'emails', priority: 4, metric: 'run', buckets: { 3: 1 } }] })
      assert.deepEqual(await remove(store), { removed: 4, more: false })
      const tables = await server(
        `select relname from pg_class where relnamespace = $1::regnamespace and relkind = 'r'
          and relname not in ('meta', 'fence_floor', 'segments', 'sleepers')`,
        [schema],
      )
      const left = await Promise.all(
        tables.map(async ({ relname }) => [relname, (await server(`select from ${schema}.${relname}`)).length]),
      )
      assert.deepEqual(
        left.filter(([, rows]) => rows !== 0),
        [],
      )
    })
  })

  test('a sweep forgets workers that wait at queues that are not there', async () => {
    await withStore(async (store, schema) => {
      await server(`insert into ${schema}.sleepers values ('never', 'gone')`)
      await store.operations.sweep({ limit: 1000 })
      assert.equal((await server(`select from ${schema}.sleepers`)).length, 0)
    })
  })

  test('a job that comes back with its id begins above its old fence', async () => {
    await withStore(async (store) => {
      const first = job()
      await store.operations.push({ jobs: [first] })
      const [old] = await claimAll(store)
      assert.ok(old)
      assert.deepEqual(await store.operations.remove({ ids: [first.id] }), { removed: 1, more: false })
      await store.operations.push({ jobs: [first] })
      const [again] = await claimAll(store)
      assert.ok(again && again.fence > old.fence)
      const stale = await store.operations.complete({ queue: 'emails', items: [{ ...old, result: null }] })
      assert.deepEqual(stale, ['stale'])
    })
  })
})
