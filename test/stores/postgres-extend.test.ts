/** Extensions beside the transaction of a worker that fell silent in the middle of its commit. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, urlOf, withStore } from './postgres-fixture.ts'

describe('an extension', { skip: missingReason('postgres') }, () => {
  test('waits for no completion that is about to be committed, and holds up nobody else’s row', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({ jobs: [job(), job(), job()] })
      const jobs = await claimAll(store)
      const [, ending] = jobs
      assert.ok(ending)
      const silent = new pg.Client({ connectionString: urlOf('postgres') })
      await silent.connect()
      try {
        await silent.query('begin')
        await silent.query(`select ${schema}.complete('emails', $1, $2)`, [[ending.id], [ending.fence]])
        const progress = { encoding: 'json' as const, body: '"half"' }
        const extensions = jobs.map(({ id, fence }) => ({ id, fence, progress }))
        // With a lease that is over at once, so that the sweep takes what it can reach.
        assert.deepEqual(await store.operations.extend({ queue: 'emails', lease: 0, items: extensions }), [
          'ok',
          'ok',
          'ok',
        ])
        await server(`update ${schema}.running set lease_until = 0 where id <> $1`, [ending.id])
        const { lost } = await store.operations.sweep({ limit: 100 })
        assert.deepEqual(
          lost.map(({ id }) => id),
          jobs.filter(({ id }) => id !== ending.id).map(({ id }) => id),
        )
        await silent.query('commit')
        assert.deepEqual(await store.operations.extend({ queue: 'emails', lease: 1000, items: extensions }), [
          'stale',
          'stale',
          'stale',
        ])
        assert.equal((await store.operations.find({ ids: [ending.id] }))[0]?.state, 'done')
      } finally {
        await silent.end()
      }
    })
  })
})
