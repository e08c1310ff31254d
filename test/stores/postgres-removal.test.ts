/** Queues that are removed on PostgreSQL, beside pushes in transactions that are not over. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job, server, urlOf, withStore } from './postgres-fixture.ts'

const HOUR = 3_600_000

/** A store with a queue `emails` that the next sweep removes, and a connection of the test's own. */
async function idle(
  check: (store: Store, schema: string, client: pg.Client, sweep: () => Promise<string[]>) => Promise<void>,
): Promise<void> {
  const clock = { now: Date.now() }
  await withStore(
    async (store, schema) => {
      const client = new pg.Client(urlOf('postgres'))
      await client.connect()
      try {
        await store.operations.push({ jobs: [job()] })
        const held = await claimAll(store)
        await store.operations.complete({ queue: 'emails', items: held.map((one) => ({ ...one, result: null })) })
        const sweep = async () => {
          clock.now += 70_000
          await store.operations.sweep({ limit: 1000 })
          return (await store.operations.stats({ minutes: 0 })).map(({ queue }) => queue)
        }
        clock.now += HOUR
        await sweep()
        clock.now += HOUR
        await check(store, schema, client, sweep)
      } finally {
        await client.end()
      }
    },
    { clock: () => clock.now },
  )
}

const push = (schema: string) => `select ${schema}.push('emails', '1') as id`

describe('queues that are removed', { skip: missingReason('postgres') }, () => {
  test('not while a push is under way in a transaction, and its job is there once that commits', async () => {
    await idle(async (store, schema, client, sweep) => {
      await client.query('begin')
      const pushed = await client.query(push(schema))
      assert.deepEqual(await sweep(), ['emails'])
      await client.query('commit')
      assert.deepEqual(await sweep(), ['emails'])
      assert.deepEqual(
        (await claimAll(store)).map(({ id }) => id),
        [pushed.rows[0]?.id],
      )
    })
  })

  test('a push that comes during the removal waits for it, and makes the queue anew', async () => {
    await idle(async (store, schema, client) => {
      await client.query('begin')
      const removed = await client.query(`select * from ${schema}.remove_queues('{emails}')`)
      assert.equal(removed.rowCount, 1)
      const pushing = store.operations.push({ jobs: [job()] })
      const waits = `select from pg_locks where locktype = 'advisory' and not granted and classid = hashtext('${schema}')::oid`
      await until(async () => (await server(waits)).length > 0, 'the push to wait')
      await client.query('commit')
      assert.equal((await pushing)[0]?.status, 'pushed')
      assert.equal((await claimAll(store)).length, 1)
    })
  })

  test('a transaction that still sees the queue fails, and can be made again', async () => {
    for (const level of ['repeatable read', 'serializable']) {
      await idle(async (store, schema, client, sweep) => {
        await client.query(`begin isolation level ${level}`)
        await client.query(`select count(*) from ${schema}.queues`)
        assert.deepEqual(await sweep(), [])
        await assert.rejects(client.query(push(schema)), { code: '40001' })
        await client.query('rollback')
        await client.query(`begin isolation level ${level}`)
        await client.query(push(schema))
        await client.query('commit')
        assert.equal((await claimAll(store)).length, 1)
      })
    }
  })

  test('nothing of it stays behind, nor of workers that waited for queues that never came', async () => {
    await idle(async (_, schema, __, sweep) => {
      await server(`insert into ${schema}.sleepers values ('emails', 'gone'), ('never', 'gone')`)
      await sweep()
      const tables = ['queues', 'lines', 'moves', 'totals', 'histograms', 'sleepers', 'keys']
      const left = await Promise.all(tables.map((table) => server(`select from ${schema}.${table}`)))
      assert.deepEqual(
        left.map(({ length }) => length),
        tables.map(() => 0),
      )
    })
  })
})
