/** Queues that nobody uses go, and no push is lost to that, however it falls together with the removal. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { onEachStore, type Place } from '../api/suite.ts'
import { claim } from '../conformance/suite.ts'
import { newJob } from '../support/jobs.ts'

const HOUR = 3_600_000

/** Two stores on one place, or twice the same where it is not shared; and a clock. */
async function withStores(
  { url, shared }: Place,
  check: (sweeper: Store, pusher: Store, clock: { now: number }) => Promise<void>,
): Promise<void> {
  const clock = { now: Date.now() }
  const open = () => openStore(url, { clock: () => clock.now })
  const sweeper = await open()
  const pusher = shared ? await open() : sweeper
  try {
    await check(sweeper, pusher, clock)
  } finally {
    await sweeper.close()
    await pusher.close()
  }
}

const names = async (store: Store): Promise<string[]> =>
  (await store.operations.stats({ minutes: 0 })).map(({ queue }) => queue).sort()

/** Does a job in the queue and lets it go, so that the queue is idle. */
async function used(store: Store, queue: string): Promise<void> {
  await store.operations.push({ jobs: [newJob({ queue })] })
  const { jobs } = await claim(store, { queue })
  await store.operations.complete({ queue, items: jobs.map((job) => ({ ...job, result: null })) })
}

/** Until the next sweep removes the queues that are idle. */
async function idle(store: Store, clock: { now: number }): Promise<void> {
  clock.now += HOUR + 1
  await store.operations.sweep({ limit: 1000 })
  clock.now += 70_000
  await store.operations.sweep({ limit: 1000 })
  clock.now += HOUR + 1
}

onEachStore('removal of queues', {
  'those with jobs or settings stay, all others go, at most 100 with a sweep': (place) =>
    withStores(place, async (sweeper, pusher, clock) => {
      const many = Array.from({ length: 150 }, (_, index) => `idle-${index}`)
      for (const queue of many) await used(pusher, queue)
      await used(pusher, 'paused')
      await pusher.operations.configure({ queue: 'paused', paused: true })
      await used(pusher, 'kept')
      await pusher.operations.configure({ queue: 'kept', keepDead: 1000 })
      await pusher.operations.push({ jobs: [newJob({ queue: 'later', delay: 10 * HOUR })] })
      await pusher.operations.push({ jobs: [newJob({ queue: 'dead' })] })
      const [dying] = (await claim(pusher, { queue: 'dead' })).jobs
      assert.ok(dying)
      const error = { code: 'HandlerFailed', name: 'E', message: 'm' }
      await pusher.operations.fail({ queue: 'dead', items: [{ ...dying, error, delay: null }] })
      await idle(sweeper, clock)
      await sweeper.operations.sweep({ limit: 1000 })
      assert.equal((await names(sweeper)).length, 54)
      clock.now += 70_000
      const { queues } = await sweeper.operations.sweep({ limit: 1000 })
      assert.deepEqual(await names(sweeper), ['dead', 'kept', 'later', 'paused'])
      assert.deepEqual(await names(pusher), ['dead', 'kept', 'later', 'paused'])
      // Where what there is was counted before the last ones went, the next sweep tells.
      assert.ok(queues === 4 || (await sweeper.operations.sweep({ limit: 1000 })).queues === 4)
    }),

  'pushes while queues go are stored in queues that are there, whoever looks': (place) =>
    withStores(place, async (sweeper, pusher, clock) => {
      const [pushed, alone] = ['pushed', 'alone'].map((name) => Array.from({ length: 40 }, (_, n) => `${name}-${n}`))
      assert.ok(pushed && alone)
      for (const queue of [...pushed, ...alone]) await used(pusher, queue)
      await idle(sweeper, clock)
      const sweeping = sweeper.operations.sweep({ limit: 1000 })
      const jobs = await Promise.all(
        pushed.map(async (queue, turns) => {
          for (let turn = 0; turn < turns; turn++) await setImmediate()
          const job = newJob({ queue })
          assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
          return job
        }),
      )
      await sweeping
      // What a push was in the way of goes later.
      for (let again = 0; again < 2; again++) {
        clock.now += 70_000
        await sweeper.operations.sweep({ limit: 1000 })
      }
      assert.deepEqual(await names(sweeper), [...pushed].sort())
      assert.deepEqual(await names(pusher), [...pushed].sort())
      for (const { queue, id } of jobs) {
        for (const store of [sweeper, pusher]) {
          const [stats] = await store.operations.stats({ queue, minutes: 0 })
          assert.equal(stats?.counts.waiting, 1, queue)
          assert.equal((await store.operations.find({ ids: [id] }))[0]?.queue, queue)
        }
        const claimed = (await claim(sweeper, { queue })).jobs.map((one) => one.id)
        assert.deepEqual(claimed, [id])
      }
    }),

  'settings while queues go hold': (place) =>
    withStores(place, async (sweeper, pusher, clock) => {
      const queues = Array.from({ length: 40 }, (_, n) => `q-${n}`)
      for (const queue of queues) await used(pusher, queue)
      await idle(sweeper, clock)
      const configure = async (queue: string, turns: number) => {
        for (let turn = 0; turn < turns; turn++) await setImmediate()
        await pusher.operations.configure({ queue, paused: true })
      }
      await Promise.all([sweeper.operations.sweep({ limit: 1000 }), ...queues.map(configure)])
      for (const store of [sweeper, pusher]) {
        for (const queue of queues) {
          const [stats] = await store.operations.stats({ queue, minutes: 0 })
          assert.equal(stats?.paused, true, queue)
        }
      }
    }),

  'one that comes back begins anew, for those who knew it, too': (place) =>
    withStores(place, async (sweeper, pusher, clock) => {
      const job = newJob({ queue: 'q', key: 'k' })
      await pusher.operations.push({ jobs: [job] })
      const [first] = (await claim(pusher)).jobs
      assert.ok(first)
      await pusher.operations.complete({ queue: 'q', items: [{ ...first, result: null }] })
      await pusher.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'wait', buckets: { 3: 1 } }] })
      await idle(sweeper, clock)
      await sweeper.operations.sweep({ limit: 1000 })
      assert.deepEqual(await names(sweeper), [])
      assert.deepEqual((await claim(pusher)).jobs, [])
      assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
      const [stats] = await sweeper.operations.stats({ queue: 'q', minutes: 60 })
      assert.deepEqual([stats?.counts.waiting, stats?.counts.done, stats?.histograms], [1, 0, []])
      const [again] = (await claim(pusher)).jobs
      assert.equal(again?.id, job.id)
      assert.deepEqual(await pusher.operations.complete({ queue: 'q', items: [{ ...again, result: null }] }), ['ok'])
    }),

  'a worker that claims where there is no queue makes none': (place) =>
    withStores(place, async (sweeper, pusher) => {
      for (let n = 0; n < 5; n++) assert.deepEqual((await claim(pusher, { queue: `none-${n}` })).jobs, [])
      await pusher.operations.configure({ queue: 'none-1' })
      assert.deepEqual(await names(sweeper), [])
    }),
})
