/** Jobs that a worker gives back, as they did not start in time, start before later ones: by a store that answers when the test lets it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { PondEmitter } from '../../src/values/jobs/events.ts'
import type { Claimed } from '../../src/values/jobs/records.ts'
import { Worker } from '../../src/worker/worker.ts'
import { mockTime } from './mock-time.ts'
import { claimedJob, storeOf } from './suite.ts'

const WINDOW = 50

test('what a claim under way brings starts after jobs that go back', async (t) => {
  const tick = mockTime(t)
  const claims: ((claimed: Claimed) => void)[] = []
  const releases: (() => void)[] = []
  const started: string[] = []
  const released: string[] = []
  const store = storeOf({
    claim: () => new Promise((resolve) => claims.push(resolve)),
    release: ({ items }) => {
      released.push(...items.map(({ id }) => id))
      return new Promise((resolve) => releases.push(() => resolve(items.map(() => 'ok' as const))))
    },
    complete: async ({ items }) => items.map(() => 'ok' as const),
    extend: async ({ items }) => items.map(() => 'ok' as const),
    record: async () => {},
  })
  const long = Promise.withResolvers<void>()
  const worker = new Worker(
    store,
    {
      ...{ queue: 'q', concurrency: 1, window: WINDOW, transaction: false, maxPayload: 1_000 },
      ...{ schema: undefined, backoff: undefined },
    },
    async ({ id }: { id: string }) => {
      started.push(id)
      if (id === 'long') await long.promise
    },
    new PondEmitter(),
    () => undefined,
    { removeWorker() {}, completed() {}, due() {} },
  )
  const ticks = async () => {
    for (let i = 0; i < 10; i++) await immediate()
  }
  const claimed = async (...ids: string[]) => {
    await ticks()
    assert.equal(claims.length, 1, `a claim is under way, which brings ${ids}`)
    const jobs = ids.map((id) => claimedJob(id))
    claims.shift()?.({ now: 0, lease: 30_000, jobs, retryAfter: null, limited: false })
    await ticks()
  }
  const wake = async () => {
    worker.wake()
    await ticks()
  }
  t.after(async () => {
    long.resolve()
    const closed = worker.close()
    await ticks()
    for (const release of releases) release()
    claims[0]?.({ now: 0, lease: 30_000, jobs: [], retryAfter: null, limited: false })
    await closed
  })

  // A short job teaches the worker to claim ahead.
  await claimed('short')
  await wake()
  await claimed('long', 'a', 'b')
  await wake()
  tick(WINDOW + 1)
  await ticks()
  assert.deepEqual(released, ['a', 'b'])
  long.resolve()
  await claimed('c')
  await wake()
  assert.deepEqual([started, released, claims.length], [['short', 'long'], ['a', 'b'], 0], 'it waits for the store')
  releases.shift()?.()
  await ticks()
  assert.deepEqual(released, ['a', 'b', 'c'])
  releases.shift()?.()
  await claimed('a', 'b', 'c')
  assert.deepEqual(started, ['short', 'long', 'a', 'b', 'c'])
})
