/** Queues that are removed on Redis, where no commit covers the list of queues and a queue's own keys: each step against each step of a push. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob } from '../support/jobs.ts'
import { complete } from './redis-everything.ts'
import { faultyClient } from './redis-faults.ts'
import { freshPrefix, keysOf, removePrefix } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
/** The steps that follow once the queue has no jobs: contract/redis/unregister.lua. */
const REMOVING = new Set(['drop', 'unregister'])
const stepsOf = (partitions: number) => 3 + 2 * partitions

const removeQueue = (store: Store) => store.operations.remove({ queue: 'q', limit: 100 })

interface Scene {
  /** Who removes the queue `q`, which has no jobs. */
  remover: Store
  removing: ReturnType<typeof faultyClient>
  /** Who pushes. It knows the queue, or has never heard of it. */
  pusher: Store
  pushing: ReturnType<typeof faultyClient>
  prefix: string
  clock: { now: number }
  /** The job that was in the queue, to be pushed again under the same id; with the fence that it had. */
  job: ReturnType<typeof newJob>
  fence: number
  /** Asserts that the job is where everybody finds it. */
  found(): Promise<void>
}

async function scene(partitions: number, knows: boolean, check: (scene: Scene) => Promise<void>): Promise<void> {
  const prefix = freshPrefix()
  const clock = { now: Date.now() }
  const [removing, pushing] = [faultyClient(url), faultyClient(url)]
  const stores: Store[] = []
  const opened = async (client?: Redis) => {
    const own = client === undefined ? {} : { client }
    const store = await open(url, { prefix, partitions, clock: () => clock.now, timeout: 2000, ...own })
    stores.push(store)
    return store
  }
  try {
    const remover = await opened(removing.client)
    const pusher = await opened(pushing.client)
    const job = newJob({ key: 'k' })
    const first = knows ? pusher : remover
    await first.operations.push({ jobs: [job] })
    const { jobs } = await claim(first)
    assert.deepEqual(await complete(first, jobs), ['ok'])
    await remover.operations.remove({ ids: [job.id] })
    const found = async () => {
      const stranger = await opened()
      const [stats] = await stranger.operations.stats({})
      assert.deepEqual([stats?.queue, stats?.counts.waiting], ['q', 1])
      assert.equal((await stranger.operations.find({ ids: [job.id] }))[0]?.state, 'waiting')
      // Whoever removed it, and a stranger, sees it as well.
      for (const store of [remover, stranger]) assert.equal((await store.operations.sweep({ limit: 100 })).queues, 1)
      const [again] = (await claim(stranger)).jobs
      assert.equal(again?.id, job.id)
      assert.deepEqual(await complete(pusher, [{ id: job.id, fence: again.fence }]), ['ok'])
    }
    const fence = jobs[0]?.fence ?? 0
    await check({ remover, removing, pusher, pushing, prefix, clock, job, fence, found })
  } finally {
    for (const store of stores) await store.close()
    for (const client of [removing, pushing]) client.disconnect()
    await removePrefix(url, prefix)
  }
}

const who = (knows: boolean) => (knows ? 'by who knew the queue' : 'by who did not')

describe('redis store: queues that are removed', { skip: missingReason('redis') }, () => {
  for (const partitions of [1, 3]) {
    for (const knows of [true, false]) {
      test(`${partitions} partitions: a push before each step of the removal, ${who(knows)}`, async () => {
        for (let at = 0; at < stepsOf(partitions); at++) {
          await scene(partitions, knows, async ({ remover, removing, pusher, job, found }) => {
            let step = 0
            let pushed = false
            const push = async () => {
              pushed = true
              assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
            }
            removing.before = async (script) => {
              if (REMOVING.has(script) && step++ === at) await push()
            }
            await removeQueue(remover)
            if (!pushed) await push()
            removing.before = () => undefined
            await found()
          })
        }
      })

      test(`${partitions} partitions: a removal before each step of a push, ${who(knows)}`, async () => {
        for (let at = 0; at < 6; at++) {
          await scene(partitions, knows, async ({ remover, pusher, pushing, job, found }) => {
            let removed = 0
            let step = 0
            pushing.before = async () => {
              if (step++ === at) removed = (await removeQueue(remover)).removed
            }
            assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
            pushing.before = () => undefined
            // 1: the job was stored before, and went with the others.
            if (removed === 0) await found()
          })
        }
      })

      test(`${partitions} partitions: a removal that ends after any step, ${who(knows)}`, async () => {
        for (let at = 0; at < stepsOf(partitions); at++) {
          await scene(partitions, knows, async ({ remover, removing, pusher, job, found }) => {
            let step = 0
            removing.before = (script) => {
              if (REMOVING.has(script) && step++ >= at) throw new Error('stopped')
            }
            await assert.rejects(removeQueue(remover))
            removing.before = () => undefined
            assert.deepEqual(await pusher.operations.push({ jobs: [job] }), [{ status: 'pushed', id: job.id }])
            await found()
          })
        }
      })
    }
  }

  for (const partitions of [1, 3]) {
    test(`${partitions} partitions: settings that are given at a step of the removal are in effect everywhere, or gone`, async () => {
      for (let at = 0; at < stepsOf(partitions); at++) {
        await scene(partitions, true, async ({ remover, removing, pusher }) => {
          let step = 0
          removing.before = async (script) => {
            if (REMOVING.has(script) && step++ === at) await pusher.operations.configure({ queue: 'q', capacity: 30 })
          }
          while ((await removeQueue(remover)).more);
          removing.before = () => undefined
          const [stats] = await remover.operations.stats({})
          const settings = await remover.operations.settings({ queue: 'q' })
          const expected = stats === undefined ? undefined : 30
          assert.deepEqual([stats?.capacity, settings?.values.capacity], [expected, expected], `at step ${at}`)
        })
      }
    })
  }

  test('a push that ends after any step is found by the next one', async () => {
    for (let at = 1; at < 5; at++) {
      await scene(1, true, async ({ remover, pusher, pushing, job, found }) => {
        await removeQueue(remover)
        let step = 0
        pushing.before = () => {
          if (step++ >= at) throw new Error('stopped')
        }
        await assert.rejects(pusher.operations.push({ jobs: [job] }))
        pushing.before = () => undefined
        const [again] = await pusher.operations.push({ jobs: [job] })
        assert.equal(again?.id, job.id)
        await found()
      })
    }
  })

  test('fences go on above all that were given out, and nothing else stays behind', async () => {
    await scene(2, true, async ({ remover, pusher, prefix, job, fence }) => {
      await pusher.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'run', buckets: { 1: 1 } }] })
      await removeQueue(remover)
      const client = new Redis(url)
      try {
        const left = ['floor', 'version'].map((key) => `{${prefix}}:${key}`)
        // Beside the marks of those who sleep, which end.
        const there = await keysOf(client, prefix)
        const ends = await Promise.all(there.map((key) => client.pttl(key)))
        assert.deepEqual(there.filter((_, at) => ends[at] === -1).toSorted(), left)
        await pusher.operations.push({ jobs: [job] })
        const [again] = (await claim(pusher)).jobs
        assert.ok(again && again.fence > fence, String(again?.fence))
        assert.deepEqual(await complete(pusher, [{ id: job.id, fence }]), ['stale'])
        assert.deepEqual((await claim(pusher, { queue: 'none' })).jobs, [])
        const [mark] = (await keysOf(client, prefix)).filter((key) => key.includes(':none'))
        assert.ok(
          mark !== undefined && (await client.pttl(mark)) > 0,
          'what a claim leaves at a queue that never came ends',
        )
      } finally {
        client.disconnect()
      }
    })
  })

  test('a queue that comes back may be split otherwise, and those who knew it as it was follow', async () => {
    await scene(3, true, async ({ remover, pusher, prefix, clock }) => {
      await pusher.operations.push({ jobs: Array.from({ length: 30 }, () => newJob()) })
      const { jobs: some } = await claim(pusher)
      assert.ok((await complete(pusher, some)).every((outcome) => outcome === 'ok'))
      assert.deepEqual(await removeQueue(remover), { removed: 30, more: false })
      const other = await open(url, { prefix, partitions: 1, clock: () => clock.now })
      try {
        const jobs = Array.from({ length: 10 }, () => newJob())
        await other.operations.push({ jobs: jobs.slice(0, 5) })
        assert.deepEqual(
          (await pusher.operations.push({ jobs: jobs.slice(5) })).map(({ status }) => status),
          Array(5).fill('pushed'),
        )
        const [stats] = await other.operations.stats({ queue: 'q' })
        assert.equal(stats?.counts.waiting, 10)
        assert.equal((await claim(other, { limit: 10 })).jobs.length, 10)
      } finally {
        await other.close()
      }
    })
  })

  test('a claim does not bring a removed queue back, whatever settings its process has given', async () => {
    await scene(1, true, async ({ remover, pusher, job }) => {
      await pusher.operations.configure({ queue: 'q', capacity: 30 })
      await removeQueue(remover)
      for (let n = 0; n < 3; n++) assert.deepEqual((await claim(pusher)).jobs, [])
      assert.deepEqual(await remover.operations.stats({}), [])
      await pusher.operations.push({ jobs: [job] })
      assert.equal((await claim(pusher)).jobs.length, 1)
    })
  })

  test('a list of queues that a failover has lost is made anew by whoever knows them', async () => {
    await scene(2, true, async ({ remover, pusher, prefix, job }) => {
      await removeQueue(remover)
      await pusher.operations.push({ jobs: [job] })
      const client = new Redis(url)
      await client.del(`{${prefix}}:queues`)
      await pusher.operations.sweep({ limit: 100 })
      assert.equal(await client.hget(`{${prefix}}:queues`, 'q'), '2')
      client.disconnect()
    })
  })
})
