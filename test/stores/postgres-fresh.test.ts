/** Pushes with ids that were made for them: they are not looked for, unless such a call may come in late. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { missingReason } from '../servers/shared.ts'
import { claimAll, job, server, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const HOUR = 3_600_000

const counts = async (store: Store) => {
  const [stats] = await store.operations.stats({})
  const { scheduled = 0, waiting = 0, running = 0 } = stats?.counts ?? {}
  return { scheduled, waiting, running }
}

/** As the library calls it. @returns what it answers */
async function pushList(schema: string, ids: readonly string[], flags: { fresh: boolean; again: boolean }) {
  const data = ids.map(() => '{}')
  const [row] = await server(`select ${schema}.push_list('emails', $1, $2, fresh => $3, again => $4) as answer`, [
    ids,
    data,
    flags.fresh,
    flags.again,
  ])
  return row?.answer
}

describe('fresh ids', { skip }, () => {
  test('are stored in order and counted, waiting or scheduled', async () => {
    await withStore(async (store) => {
      const now = Array.from({ length: 40 }, () => job({ fresh: true }))
      const later = Array.from({ length: 3 }, () => job({ fresh: true, delay: 60_000 }))
      for (const jobs of [now, later]) {
        assert.deepEqual(
          await store.operations.push({ jobs }),
          jobs.map(({ id }) => ({ status: 'pushed', id })),
        )
      }
      assert.deepEqual(await counts(store), { scheduled: 3, waiting: 40, running: 0 })
      assert.deepEqual(
        (await claimAll(store)).map(({ id }) => id),
        now.map(({ id }) => id),
      )
    })
  })

  test('beside an id of the caller’s, that one is looked for', async () => {
    await withStore(async (store) => {
      const known = job()
      await store.operations.push({ jobs: [known] })
      await claimAll(store)
      const fresh = job({ fresh: true })
      assert.deepEqual(await store.operations.push({ jobs: [fresh, known] }), [
        { status: 'pushed', id: fresh.id },
        { status: 'existing', id: known.id },
      ])
    })
  })

  test('keep to the capacity', async () => {
    await withStore(async (store) => {
      await store.operations.configure({ queue: 'emails', capacity: 2 })
      const outcomes = await store.operations.push({
        jobs: [job({ fresh: true }), job({ fresh: true }), job({ fresh: true })],
      })
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['pushed', 'pushed', 'full'],
      )
    })
  })

  test('a call that comes in after it was made again stores nothing, wherever its jobs are by then', async () => {
    await withStore(async (store, schema) => {
      const ids = Array.from({ length: 3 }, () => job().id)
      assert.equal(await pushList(schema, ids, { fresh: false, again: true }), null)
      const [first] = (await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })).jobs
      const [second] = (await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 60_000 })).jobs
      assert.ok(first && second)
      await store.operations.complete({ queue: 'emails', items: [{ id: first.id, fence: first.fence, result: null }] })
      // One is done and one is running; the one that waits would be in its way by itself.
      const gone = [first.id, second.id]
      const before = await counts(store)
      assert.deepEqual(
        await pushList(schema, gone, { fresh: true, again: false }),
        gone.map((id) => `existing ${id}`),
      )
      assert.deepEqual(await counts(store), before)
      await assert.rejects(pushList(schema, ids, { fresh: true, again: false }), { code: '23505' })
      assert.deepEqual(await counts(store), before)
    })
  })

  test('are looked for no longer than an hour after a call was made again', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store, schema) => {
        await server(`insert into ${schema}.repeats values ($1)`, [clock.now])
        const notes = async () => (await server(`select at from ${schema}.repeats`)).length
        clock.now += HOUR - 1
        await store.operations.sweep({ limit: 100 })
        assert.equal(await notes(), 1)
        clock.now += 1
        await store.operations.sweep({ limit: 100 })
        assert.equal(await notes(), 0)
      },
      { clock: () => clock.now },
    )
  })
})
