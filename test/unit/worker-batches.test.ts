/** When a worker with a batch handler claims, and when a batch starts, by a store that counts and a clock that stands still but for `pass`. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { PondEmitter } from '../../src/values/jobs/events.ts'
import type { Job } from '../../src/values/jobs/job.ts'
import type { Claimed } from '../../src/values/jobs/records.ts'
import type { BatchSettings } from '../../src/worker/batch-slots.ts'
import { Worker } from '../../src/worker/worker.ts'
import { until } from '../support/until.ts'
import { mockTime } from './mock-time.ts'
import { claimedJob, storeOf } from './suite.ts'

/** Ids may have a group behind an @. The handler of a batch runs until `finish` of its first id. */
async function batching(t: TestContext, given: Partial<BatchSettings>, concurrency = 1) {
  const tick = mockTime(t)
  const asked: ((claimed: Claimed | Promise<Claimed>) => void)[] = []
  const wanted: string[] = []
  const batches: string[] = []
  const released: string[] = []
  const store = storeOf({
    claim: ({ limit }) => {
      wanted.push(String(limit))
      return new Promise((resolve) => asked.push(resolve))
    },
    complete: async ({ items: completions }) => completions.map(() => 'ok' as const),
    release: async ({ items: holds }) => {
      released.push(...holds.map(({ id }) => id))
      return holds.map(() => 'ok' as const)
    },
    extend: async ({ items: extensions }) => extensions.map(() => 'ok' as const),
    record: async () => {},
  })
  const ended = new EventEmitter().setMaxListeners(0)
  const { max = 3, within = 0, min = within > 0 ? max : 1, sameGroup = false } = given
  const batch = { max, within, min, sameGroup }
  const settings = { queue: 'q', concurrency, window: 50 + within, transaction: false, maxPayload: 1_000 }
  const worker = new Worker(
    store,
    { ...settings, batch, schema: undefined, backoff: undefined },
    async (jobs: Job[]) => {
      batches.push(jobs.map(({ id }) => id).join(' '))
      await Promise.race([once(ended, jobs[0]?.id ?? ''), once(ended, 'all')])
    },
    new PondEmitter(),
    () => undefined,
    { removeWorker() {}, completed() {}, due() {} },
  )
  const ticks = async () => {
    for (let i = 0; i < 10; i++) await immediate()
  }
  t.after(async () => {
    t.mock.timers.reset()
    const closed = worker.close()
    await ticks()
    asked.at(-1)?.(claimed([]))
    ended.emit('all')
    await closed
  })
  await until(() => asked.length === 1)
  return {
    worker,
    wanted,
    batches,
    released,
    answer: async (...ids: string[]) => {
      tick(1)
      asked.at(-1)?.(claimed(ids))
      await ticks()
    },
    fail: async () => {
      asked.at(-1)?.(Promise.reject(new Error('no store')))
      await ticks()
    },
    wake: async () => {
      worker.wake()
      await ticks()
    },
    pass: async (ms: number) => {
      tick(ms)
      await ticks()
    },
    finish: async (id: string) => {
      ended.emit(id)
      await ticks()
    },
  }
}

const claimed = (ids: string[]): Claimed => ({
  now: 0,
  lease: 30_000,
  jobs: ids.map((id) => claimedJob(id, { group: id.split('@')[1] ?? null })),
  retryAfter: null,
  limited: false,
})

const ids = (count: number, letter: string) => Array.from({ length: count }, (_, n) => `${letter}${n}`)

test('it claims for the free batches, and for nothing ahead of them', async (t) => {
  const { worker, wanted, batches, answer, finish, wake, pass } = await batching(t, {}, 2)
  await answer(...ids(6, 'a'))
  assert.deepEqual(batches, ['a0 a1 a2', 'a3 a4 a5'])
  assert.deepEqual(worker.load, { running: 2, buffered: 0, slots: 2 })
  await wake()
  await pass(100)
  assert.deepEqual(wanted, ['6'])
  await finish('a0')
  assert.deepEqual(wanted, ['6', '3'])
})

test('a batch beyond 500 jobs is claimed in several calls, and starts when they are answered', async (t) => {
  const { wanted, batches, answer } = await batching(t, { max: 1200 })
  await answer(...ids(500, 'a'))
  await answer(...ids(500, 'b'))
  assert.equal(batches.length, 0)
  await answer(...ids(150, 'c'))
  assert.deepEqual(wanted, ['500', '500', '200'])
  assert.deepEqual(
    batches.map((batch) => batch.split(' ').length),
    [1150],
  )
})

test('a batch that a claim might fill starts even if the claim fails', async (t) => {
  const { batches, answer, fail } = await batching(t, { max: 600 })
  await answer(...ids(500, 'a'))
  assert.equal(batches.length, 0)
  await fail()
  assert.equal(batches.length, 1)
})

test('a full batch does not wait for the claim of another', async (t) => {
  const { wanted, batches, answer } = await batching(t, { max: 300 }, 2)
  await answer(...ids(500, 'a'))
  assert.deepEqual(wanted, ['500', '100'])
  assert.equal(batches.length, 1)
  await answer()
  assert.deepEqual(
    batches.map((batch) => batch.split(' ').length),
    [300, 200],
  )
})

test('without within a batch starts with what has come', async (t) => {
  const { batches, answer } = await batching(t, { max: 100 })
  await answer('a', 'b')
  assert.deepEqual(batches, ['a b'])
})

test('within: a batch waits so long from the arrival of its first job', async (t) => {
  const { worker, batches, answer, wake, pass } = await batching(t, { max: 100, within: 20 })
  await answer('a', 'b')
  await pass(10)
  await wake()
  await answer('c')
  assert.deepEqual(worker.load, { running: 0, buffered: 3, slots: 1 })
  await pass(8)
  assert.equal(batches.length, 0)
  await pass(1)
  assert.deepEqual(batches, ['a b c'])
})

test('within: a full batch does not wait', async (t) => {
  const { batches, answer } = await batching(t, { max: 2, within: 20 })
  await answer('a', 'b')
  assert.deepEqual(batches, ['a b'])
})

test('min: a batch of so many jobs does not wait', async (t) => {
  const { batches, answer, wake, pass } = await batching(t, { max: 100, within: 20, min: 3 })
  await answer('a', 'b')
  await pass(10)
  await wake()
  assert.equal(batches.length, 0)
  await answer('c', 'd')
  assert.deepEqual(batches, ['a b c d'])
})

test('sameGroup: each batch is of one group, and the jobs without one are together', async (t) => {
  const { batches, answer } = await batching(t, { max: 3, sameGroup: true }, 4)
  await answer('a@x', 'b', 'c@y', 'd@x', 'e', 'f@x', 'g@x')
  assert.deepEqual(batches, ['a@x d@x f@x', 'b e', 'c@y', 'g@x'])
})

test('sameGroup: a group waits for itself', async (t) => {
  const { batches, answer, finish, pass } = await batching(t, { max: 4, min: 2, within: 20, sameGroup: true })
  await answer('a@x', 'b@y', 'c@y')
  assert.deepEqual(batches, ['b@y c@y'])
  await finish('b@y')
  await pass(19)
  assert.equal(batches.length, 1)
  await pass(1)
  assert.deepEqual(batches.slice(1), ['a@x'])
})

test('sameGroup: no group waits when no more jobs can be claimed', async (t) => {
  const { batches, answer } = await batching(t, { max: 3, within: 20, sameGroup: true })
  await answer('a@x', 'b@y', 'c@z')
  assert.deepEqual(batches, ['a@x'])
})

test('sameGroup: jobs for which no batch is free are given back when the window is over', async (t) => {
  const { worker, batches, released, answer, pass } = await batching(t, { sameGroup: true })
  await answer('a@x', 'b@y', 'c@y')
  assert.deepEqual(batches, ['a@x'])
  assert.equal(worker.load.buffered, 2)
  await pass(49)
  assert.deepEqual(released, [])
  await pass(2)
  assert.deepEqual([released, worker.load.buffered], [['b@y', 'c@y'], 0])
})

test('a job whose lease may be over is given back, and the others of its batch start', async (t) => {
  const { batches, released, answer, pass, wake } = await batching(t, { max: 2, within: 20 })
  await pass(30_000)
  await answer('late')
  await wake()
  await pass(10)
  await answer('timely')
  assert.deepEqual([batches, released], [['timely'], ['late']])
})

test('a claim that takes longer than the window does not hold up a batch that has a slot', async (t) => {
  const { batches, released, answer, wake, pass } = await batching(t, { within: 20 })
  await answer('a0', 'a1')
  await wake()
  await pass(60)
  assert.deepEqual(batches, [])
  await pass(20)
  assert.deepEqual(batches, ['a0 a1'])
  assert.deepEqual(released, [])
})
