/** A queue with a capacity: a batch that fits takes its room once, as cheaply as one without. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingReason } from '../servers/shared.ts'
import { job, server, withStore } from './postgres-fixture.ts'

const batch = (count: number) => Array.from({ length: count }, () => job({ queue: 'q', fresh: true }))

test(
  'a batch that fits is stored at once; of one that does not, the first jobs are',
  { skip: missingReason('postgres') },
  () =>
    withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'q', capacity: 250 })
      const statuses = async (count: number) => {
        const tally: Record<string, number> = {}
        for (const { status } of await store.operations.push({ jobs: batch(count) }))
          tally[status] = (tally[status] ?? 0) + 1
        return tally
      }
      assert.deepEqual(await statuses(200), { pushed: 200 })
      // A row of counts per statement, so job by job there would be 200.
      const [counted] = await server(`select count(*)::integer as rows from ${schema}.moves where was = 'new'`)
      assert.equal(counted?.rows, 1)
      assert.deepEqual(await statuses(100), { pushed: 50, full: 50 })
      assert.deepEqual(await statuses(5), { full: 5 })
      const [{ counts } = { counts: undefined }] = await store.operations.stats({ queue: 'q' })
      assert.equal(counts?.waiting, 250)
    }),
)
