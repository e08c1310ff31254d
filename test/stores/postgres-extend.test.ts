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
          'held',
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

  for (const [what, options] of [
    ['a follower', (key: string) => ({ key, once: { follow: true } })],
    ['a child', (_: string, parent: string) => ({ after: [parent] })],
  ] as const)
    test(`holds although an application's open transaction pushed ${what} of the job`, async () => {
      await withStore(async (store, schema) => {
        await store.operations.configure({ queue: 'emails', keepDone: 0 })
        await store.operations.push({ jobs: [job({ key: 'k' })] })
        const [claimed] = await claimAll(store)
        assert.ok(claimed)
        const application = new pg.Client({ connectionString: urlOf('postgres') })
        await application.connect()
        try {
          await application.query('begin')
          const { data, ...rest } = job(options('k', claimed.id))
          const pushed = [{ ...rest, data: `j${data.body}` }]
          await application.query(`select ${schema}.push_graph($1, false)`, [JSON.stringify(pushed)])
          const before = await server(`select lease_until from ${schema}.running`)
          const item = { id: claimed.id, fence: claimed.fence, progress: null }
          assert.deepEqual(await store.operations.extend({ queue: 'emails', lease: 3_600_000, items: [item] }), ['ok'])
          const [after] = await server(`select lease_until from ${schema}.running`)
          assert.ok(Number(after?.lease_until) > Number(before[0]?.lease_until) + 1_000_000, 'the lease was extended')
          await application.query('commit')
          assert.deepEqual((await store.operations.sweep({ limit: 100 })).lost, [])
        } finally {
          await application.end()
        }
      })
    })
})
