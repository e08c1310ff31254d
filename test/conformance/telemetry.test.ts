/** What is published of a store's operations. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { isMillpondError } from '../../src/index.ts'
import type { Operations, Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { observed, type StoreOperation } from '../../src/stores/telemetry.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

/** What is published of this store while it is used. */
async function published(
  store: Store,
  use: (operations: Operations) => Promise<unknown>,
  operations = observed(store).operations,
): Promise<StoreOperation[]> {
  const told: StoreOperation[] = []
  const listener = (message: unknown) => told.push(message as StoreOperation)
  subscribe('millpond:operation', listener)
  try {
    await use(operations)
  } finally {
    unsubscribe('millpond:operation', listener)
  }
  for (const { ms, store: kind } of told) {
    assert.ok(ms >= 0)
    assert.equal(kind, store.name)
  }
  return told
}

/** Without what differs from run to run. */
const plain = (told: readonly StoreOperation[]) =>
  told.map(({ name, queue, items, code }) => [name, queue, items, code])

conformance('published operations', {
  'have a name, a queue, a number of items and a time, and no payload': async (store) => {
    const secret = { encoding: 'json', body: '"s3cret"' } as const
    const told = await published(store, async (operations) => {
      await operations.push({ jobs: [newJob({ data: secret }), newJob(), newJob()] })
      await operations.push({ jobs: [newJob({ queue: 'a' }), newJob({ queue: 'b' })] })
      const { jobs } = await operations.claim({ queue: 'q', worker: 'w', limit: 2, lease: 60_000 })
      await operations.fail({ queue: 'q', items: jobs.map((job) => ({ ...job, error: ERROR, delay: 0 })) })
      await operations.sweep({ limit: 10 })
      await operations.stats({ queue: 'q' })
      await operations.find({ ids: jobs.map(({ id }) => id) })
      await operations.configure({ queue: 'q', paused: true })
    })
    assert.deepEqual(plain(told), [
      ['push', 'q', 3, null],
      ['push', null, 2, null],
      ['claim', 'q', 2, null],
      ['fail', 'q', 2, null],
      ['sweep', null, null, null],
      ['stats', 'q', null, null],
      ['find', null, 2, null],
      ['configure', 'q', null, null],
    ])
    assert.ok(!JSON.stringify(told).includes('s3cret'))
  },

  'have the code of the error, which the caller gets as well': async (store) => {
    await store.close()
    const told = await published(store, async ({ push, cancel }) => {
      const closed = (error: unknown) => isMillpondError(error, 'Closed')
      await assert.rejects(push({ jobs: newJobs(2) }), closed)
      await assert.rejects(cancel({ ids: [newJob().id] }), closed)
    })
    assert.deepEqual(plain(told), [
      ['push', 'q', 2, 'Closed'],
      ['cancel', null, 1, 'Closed'],
    ])
  },

  'are not there without a subscriber': async (store) => {
    const told = await published(store, async ({ stats }) => stats({}))
    await observed(store).operations.push({ jobs: [newJob()] })
    assert.deepEqual(plain(told), [['stats', null, null, null]])
    assert.equal((await claim(store)).jobs.length, 1)
  },
})

test('a store that is opened by its URL publishes its operations', async () => {
  const store = await openStore('memory:', {})
  const told = await published(store, ({ push }) => push({ jobs: [newJob()] }), store.operations)
  assert.deepEqual(plain(told), [['push', 'q', 1, null]])
  await store.close()
})
