/** `remove` of a queue, alone and at the moment of pushes and settings, on every store. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { onEachStore, type Place } from '../api/suite.ts'
import { claim } from '../conformance/suite.ts'
import { newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'

/** Two stores on one place, or twice the same where it is not shared. */
async function withStores({ url, shared }: Place, check: (remover: Store, pusher: Store) => Promise<void>) {
  const remover = await openStore(url, {})
  const pusher = shared ? await openStore(url, {}) : remover
  try {
    await check(remover, pusher)
  } finally {
    await remover.close()
    await pusher.close()
  }
}

const names = async (store: Store): Promise<string[]> =>
  (await store.operations.stats({})).map(({ queue }) => queue).sort()

/** @returns how many jobs went with the queue */
async function removeAll(store: Store, queue: string): Promise<number> {
  for (let sum = 0; ; ) {
    const { removed, more } = await store.operations.remove({ queue, limit: 100 })
    sum += removed
    if (!more) return sum
  }
}

async function afterTicks(ticks: number): Promise<void> {
  for (let tick = 0; tick < ticks; tick++) await setImmediate()
}

const manyQueues = (name: string): string[] => Array.from({ length: 40 }, (_, n) => `${name}-${n}`)

onEachStore('removal of queues', {
  'a job that is pushed meanwhile is in a queue that is there, or went with the others': (place) =>
    withStores(place, async (remover, pusher) => {
      const queues = manyQueues('q')
      for (const queue of queues) await pusher.operations.push({ jobs: [newJob({ queue })] })
      const removed = queues.map((queue) => removeAll(remover, queue))
      const jobs = await Promise.all(
        queues.map(async (queue, ticks) => {
          await afterTicks(ticks)
          const job = newJob({ queue })
          assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
          return job
        }),
      )
      const left: string[] = []
      for (const [at, { id, queue }] of jobs.entries()) {
        const isLeft = (await removed[at]) === 1
        if (isLeft) left.push(queue)
        for (const store of [remover, pusher]) {
          const [stats] = await store.operations.stats({ queue })
          if (isLeft) assert.equal(stats?.counts.waiting, 1, queue)
          assert.equal((await store.operations.find({ ids: [id] }))[0]?.queue, isLeft ? queue : undefined)
        }
        const claimed = (await claim(remover, { queue })).jobs.map((one) => one.id)
        assert.deepEqual(claimed, isLeft ? [id] : [])
      }
      assert.ok((await names(remover)).filter((name) => left.includes(name)).length === left.length)
    }),

  'settings that are given meanwhile hold, or went with the queue': (place) =>
    withStores(place, async (remover, pusher) => {
      const queues = manyQueues('s')
      for (const queue of queues) await pusher.operations.push({ jobs: [newJob({ queue })] })
      const configure = async (queue: string, ticks: number) => {
        await afterTicks(ticks)
        await pusher.operations.configure({ queue, capacity: 7 })
      }
      await Promise.all([...queues.map((queue) => removeAll(remover, queue)), ...queues.map(configure)])
      for (const store of [remover, pusher]) {
        for (const queue of queues) {
          const [stats] = await store.operations.stats({ queue })
          assert.ok(stats === undefined || stats.capacity === 7, queue)
        }
      }
    }),

  'one that comes back begins anew, for those who knew it, too': (place) =>
    withStores(place, async (remover, pusher) => {
      const job = newJob({ queue: 'q', key: 'k' })
      await pusher.operations.push({ jobs: [job] })
      const [first] = (await claim(pusher)).jobs
      assert.ok(first)
      await pusher.operations.complete({ queue: 'q', items: [{ ...first, result: null }] })
      await pusher.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'wait', buckets: { 3: 1 } }] })
      assert.deepEqual(await removeAll(remover, 'q'), 1)
      assert.deepEqual(await names(remover), [])
      assert.deepEqual((await claim(pusher)).jobs, [])
      assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
      const [stats] = await remover.operations.stats({ queue: 'q', minutes: 60 })
      assert.deepEqual([stats?.counts.waiting, stats?.counts.done, stats?.histograms], [1, 0, []])
      const [again] = (await claim(pusher)).jobs
      assert.equal(again?.id, job.id)
      assert.deepEqual(await pusher.operations.complete({ queue: 'q', items: [{ ...again, result: null }] }), ['ok'])
    }),

  'those who wait for room in it, or for a job of it, are woken': (place) =>
    withStores(place, async (remover, waiting) => {
      const heard: string[] = []
      const stop = waiting.listen(({ kind, queue }) => heard.push(`${kind} ${queue}`))
      // What the remover does is heard by listening alone, so what it did before was heard, too.
      const hearsRoom = async (queue: string) => {
        await waiting.operations.configure({ queue, capacity: 1 })
        await waiting.operations.push({ jobs: [newJob({ queue }), newJob({ queue })] })
        heard.length = 0
        let capacity = 1
        await until(async () => {
          await remover.operations.configure({ queue, capacity: ++capacity })
          await waiting.operations.push({ jobs: [newJob({ queue }), newJob({ queue })] })
          return heard.includes(`room ${queue}`)
        }, `room in ${queue}`)
      }
      await hearsRoom('first')
      await waiting.operations.configure({ queue: 'q', capacity: 1 })
      const [ran, waits] = [newJob({ queue: 'q' }), newJob({ queue: 'q' })]
      await waiting.operations.push({ jobs: [ran] })
      await claim(waiting)
      await waiting.operations.push({ jobs: [waits] })
      assert.equal((await waiting.operations.push({ jobs: [newJob({ queue: 'q' })] }))[0]?.status, 'full')
      assert.equal((await waiting.operations.outcomes({ ids: [waits.id] }))[0]?.state, 'waiting')
      // Bells come in order, so none of before is left.
      await hearsRoom('last')
      heard.length = 0
      assert.equal(await removeAll(remover, 'q'), 2)
      await until(
        () => ['room', 'finished', 'cancelled'].every((kind) => heard.includes(`${kind} q`)),
        'bells of the removed queue',
        10_000,
      )
      stop()
    }),

  'a worker that claims where there is no queue makes none': (place) =>
    withStores(place, async (remover, pusher) => {
      for (let n = 0; n < 5; n++) assert.deepEqual((await claim(pusher, { queue: `none-${n}` })).jobs, [])
      await pusher.operations.configure({ queue: 'none-1' })
      assert.deepEqual(await names(remover), [])
    }),
})
