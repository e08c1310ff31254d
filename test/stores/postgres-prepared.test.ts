/** The PostgreSQL store's prepared statements: what happens when the server no longer takes them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { missingReason } from '../servers/shared.ts'
import { claimAll, dropSchema, job, openPostgres, server, urlOf, withStore } from './postgres-fixture.ts'

describe('prepared statements', { skip: missingReason('postgres') }, () => {
  const prepared = (pool: pg.Pool, schema: string) =>
    pool.query(`select statement from pg_prepared_statements where statement like $1`, [`%${schema}%`])

  test('a newer version that changes what a function answers is no failure', async () => {
    await withStore(async (store, schema) => {
      await store.push([job()])
      // On every connection there is.
      await Promise.all(Array.from({ length: 8 }, () => store.stats({})))
      await server(`create schema ${schema}_before`)
      await server(`alter function ${schema}.stats(text, integer, bigint) set schema ${schema}_before`)
      await server(`create function ${schema}.stats(queue text, minutes integer, now bigint) returns setof jsonb
        language sql as 'select s::jsonb from ${schema}_before.stats($1, $2, $3) as s'`)
      const all = await Promise.all(Array.from({ length: 8 }, () => store.stats({})))
      assert.deepEqual(
        all.map(([stats]) => stats?.counts.waiting),
        all.map(() => 1),
      )
      await dropSchema(`${schema}_before`)
    })
  })

  test('they are kept on a caller’s Pool, and done without once somebody has discarded them', async () => {
    const client = new pg.Pool({ connectionString: urlOf('postgres'), max: 1 })
    const { store, schema, dispose } = await openPostgres(urlOf('postgres'), { client })
    try {
      await store.push([job()])
      assert.ok((await prepared(client, schema)).rows.length > 0)
      await client.query('deallocate all')
      await store.push([job()])
      assert.equal((await claimAll(store)).length, 2)
      assert.equal((await prepared(client, schema)).rows.length, 0)
    } finally {
      await dispose()
      await client.end()
    }
  })

  test('none is left behind a pooler', { skip: missingReason('pgbouncer') }, async () => {
    const { store, schema, dispose } = await openPostgres(urlOf('pgbouncer'))
    const pooler = new pg.Pool({ connectionString: urlOf('pgbouncer'), max: 1 })
    try {
      await store.push([job()])
      await claimAll(store)
      assert.equal((await prepared(pooler, schema)).rows.length, 0)
    } finally {
      await dispose()
      await pooler.end()
    }
  })
})
