/** What a crash of PostgreSQL undoes, since claims wait for no fsync: their fences are never given out again. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { open } from '../../src/stores/postgres/index.ts'
import { startPostgres } from '../servers/postgres.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job, withStore } from './postgres-fixture.ts'

describe('a crash of the server', { skip: missingReason('postgres') }, () => {
  test('a fence is not given out twice', async () => {
    // So late that the claims are still in memory when it crashes.
    const server = await startPostgres({ settings: { wal_writer_delay: '10s' } })
    const store = await open(server.url, {})
    try {
      const jobs = [job(), job()]
      await store.operations.push({ jobs })
      // One call, on the only connection: nothing that is on the disk comes after it.
      const before = await claimAll(store)
      assert.deepEqual(
        before.map(({ fence }) => fence),
        [1, 1],
      )
      await server.kill('SIGKILL')
      await server.restart()
      const after: typeof before = []
      await until(async () => {
        after.push(...(await claimAll(store).catch(() => [])))
        return after.length === 2
      }, 'the jobs to be claimed again')
      for (const claim of before) {
        const again = after.find(({ id }) => id === claim.id)
        assert.ok(again && again.fence > claim.fence, `${again?.fence} after ${claim.fence}`)
      }
      // The old holders are too late; the new ones are not disturbed.
      const holds = (claims: typeof before) => claims.map(({ id, fence }) => ({ id, fence, result: null }))
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holds(before) }), ['stale', 'stale'])
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holds(after) }), ['ok', 'ok'])
    } finally {
      await store.close()
      await server.stop()
    }
  })

  test('without one they rise by one', async () => {
    await withStore(async (store) => {
      await store.operations.push({ jobs: [job()] })
      for (const fence of [1, 2, 3]) {
        const claims = await claimAll(store)
        assert.deepEqual(
          claims.map((claim) => claim.fence),
          [fence],
        )
        await store.operations.release({ queue: 'emails', items: claims })
      }
    })
  })
})
