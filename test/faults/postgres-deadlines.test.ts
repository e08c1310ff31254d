/** Calls that take too long: the server gives up what nobody waits for any more, and nothing of it takes effect. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { open } from '../../src/stores/postgres/index.ts'
import { type ErrorCode, isMillpondError } from '../../src/values/errors/errors.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf, withStore } from '../stores/postgres-fixture.ts'
import { until } from '../support/until.ts'

const skip = missingReason('postgres')
const is = (code: ErrorCode) => (error: unknown) => isMillpondError(error, code)

/** While another transaction holds a lock that keeps everybody from the table. */
async function whileLocked(table: string, body: (unlock: () => Promise<unknown>) => Promise<void>): Promise<void> {
  const other = new pg.Client(urlOf('postgres'))
  await other.connect()
  try {
    await other.query('begin')
    await other.query(`lock table ${table} in access exclusive mode`)
    await body(() => other.query('commit'))
  } finally {
    await other.end()
  }
}

const atWork = async (schema: string) =>
  (
    await server(
      `select 1 from pg_stat_activity where state = 'active' and query like $1 and pid <> pg_backend_pid()`,
      [`%${schema}.%`],
    )
  ).length

describe('behind a lock', { skip }, () => {
  for (const name of ['postgres', 'pgbouncer'] as const) {
    test(`${name}: claims, sweeps and endings are given up by the server, and leave nothing behind`, {
      skip: missingReason(name),
    }, async () => {
      const schema = newSchema()
      // Laid down by one with time enough for it.
      await (await open(urlOf('postgres'), { schema })).close()
      const store = await open(urlOf(name), { schema, timeout: 2000 })
      try {
        await store.operations.push({ jobs: [job({ attempts: 1 }), job({ attempts: 1 })] })
        const [held] = await claimAll(store, 1)
        assert.ok(held)
        await whileLocked(`${schema}.running`, async (unlock) => {
          await Promise.all([
            assert.rejects(claimAll(store), is('StoreBusy')),
            assert.rejects(store.operations.sweep({ limit: 10 }), is('StoreBusy')),
            assert.rejects(
              store.operations.complete({ queue: 'emails', items: [{ ...held, result: null }] }),
              is('StoreBusy'),
            ),
          ])
          await until(async () => (await atWork(schema)) === 0, 'the server to be done with them')
          await unlock()
        })
        // Its only attempt is still there.
        const jobs = await claimAll(store)
        assert.deepEqual(
          jobs.map(({ attempt }) => attempt),
          [1],
        )
        assert.deepEqual(await store.operations.complete({ queue: 'emails', items: [{ ...held, result: null }] }), [
          'ok',
        ])
      } finally {
        await store.close()
        await dropSchema(schema)
      }
    })
  }

  test('a claim that comes too late for its lease is undone', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({ jobs: [job({ attempts: 1 })] })
      const LEASE = 3000
      await whileLocked(`${schema}.running`, async (unlock) => {
        const claim = assert.rejects(
          store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: LEASE }),
          is('StoreBusy'),
        )
        await until(async () => {
          const [row] = await server(
            `select 1 from pg_stat_activity where query like $1 and wait_event_type = 'Lock' and now() - query_start > interval '1600 ms'`,
            [`%${schema}.claim%`],
          )
          return row !== undefined
        }, 'half the lease')
        await unlock()
        await claim
      })
      assert.equal((await claimAll(store))[0]?.attempt, 1)
    })
  })

  test('a lease begins when the lock was got', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({ jobs: [job()] })
      await whileLocked(`${schema}.running`, async (unlock) => {
        const claim = store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })
        await until(async () => {
          const rows = await server(`select 1 from pg_stat_activity where query like $1 and wait_event_type = 'Lock'`, [
            `%${schema}.claim%`,
          ])
          return rows.length > 0
        }, 'the claim to wait')
        const [before] = await server('select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now')
        await unlock()
        assert.ok((await claim).now >= Number(before?.now))
      })
    })
  })
})

describe('a role with a statement_timeout of its own', { skip }, () => {
  test('does not cut the store’s calls short', async () => {
    await withStore(async (owner, schema) => {
      const url = new URL(urlOf('postgres'))
      url.searchParams.set('statement_timeout', '50')
      const store = await open(url, { schema })
      try {
        await owner.operations.push({ jobs: [job()] })
        await whileLocked(`${schema}.running`, async (unlock) => {
          const claim = claimAll(store)
          await until(async () => {
            const [row] = await server(
              `select 1 from pg_stat_activity where query like $1 and wait_event_type = 'Lock' and now() - query_start > interval '200 ms'`,
              [`%${schema}.claim%`],
            )
            return row !== undefined
          }, 'the claim to wait for longer')
          await unlock()
          assert.equal((await claim).length, 1)
        })
      } finally {
        await store.close()
      }
    })
  })
})
