/** Redis Cluster: queues split into partitions, and masters that fail. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, Millpond } from '../../src/index.ts'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { connect, keysOf, openRedis } from './redis-fixture.ts'

const PARTITIONS = 4

/** On one server a queue can be split as well: the same code, easier to look into. */
for (const server of ['redis', 'redis-cluster'] as const) {
  const url = serverUrl(server) ?? ''

  describe(`partitions on ${server}`, { skip: missingReason(server) }, () => {
    const onStore = (title: string, check: (store: Store, clock: { now: number }, prefix: string) => Promise<void>) =>
      test(title, async () => {
        const clock = { now: Date.now() }
        const options: StoreOptions = { partitions: PARTITIONS, clock: () => clock.now }
        const { store, prefix, dispose } = await openRedis(url, options)
        try {
          await check(store, clock, prefix)
        } finally {
          await dispose()
        }
      })
    const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id).toSorted()

    onStore(
      'jobs are spread, and claims of any size get them all once, the first partition being another each time',
      async (store, _, prefix) => {
        const jobs = newJobs(200)
        await store.operations.push({ jobs })
        const client = connect(url)
        const keys = await keysOf(client, prefix)
        client.disconnect()
        assert.equal(keys.filter((key) => key.endsWith(':waiting')).length, PARTITIONS)
        const claimed: ClaimedJob[] = []
        for (const limit of [1, 1, 1, 1, 2, 3, 50, 7, 1, 1000]) claimed.push(...(await claim(store, { limit })).jobs)
        assert.deepEqual(idsOf(claimed), idsOf(jobs))
        assert.deepEqual((await claim(store, { limit: 1 })).jobs, [])
        assert.ok(
          (
            await store.operations.complete({
              queue: 'q',
              items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
            })
          ).every((it) => it === 'ok'),
        )
        const [stats] = await store.operations.stats({})
        assert.equal(stats?.counts.done, 200)
      },
    )

    onStore('the last jobs are found wherever they are, by the smallest claims', async (store) => {
      for (let round = 0; round < 20; round++) {
        const job = newJob()
        await store.operations.push({ jobs: [job] })
        assert.deepEqual(idsOf((await claim(store, { limit: 1 })).jobs), [job.id])
      }
    })

    onStore('higher priorities come first in a claim of all', async (store) => {
      await store.operations.push({ jobs: Array.from({ length: 40 }, (_, i) => newJob({ priority: i % 10 })) })
      const priorities = (await claim(store)).jobs.map(({ priority }) => priority)
      assert.deepEqual(
        priorities,
        priorities.toSorted((a, b) => b - a),
      )
    })

    onStore('one live job per key, wherever the ids would go; endings by id and fence find it', async (store) => {
      const ids: string[] = []
      for (let i = 0; i < 12; i++) {
        const [outcome] = await store.operations.push({ jobs: [newJob({ key: 'k' })] })
        ids.push(outcome?.id ?? '')
      }
      assert.equal(new Set(ids).size, 1)
      const keyed = Array.from({ length: 12 }, (_, i) => newJob({ key: `k${i}` }))
      await store.operations.push({ jobs: keyed })
      const { jobs } = await claim(store)
      const holds = jobs.map(({ id, fence }) => ({ id, fence }))
      const ok = (outcomes: readonly string[]) => assert.deepEqual(new Set(outcomes), new Set(['ok']))
      ok(
        await store.operations.extend({
          queue: 'q',
          lease: 90_000,
          items: holds.map((hold) => ({ ...hold, progress: null })),
        }),
      )
      ok(await store.operations.release({ queue: 'q', items: holds.slice(0, 3) }))
      assert.deepEqual(
        await store.operations.fail({
          queue: 'q',
          items: holds.slice(3, 5).map((hold) => ({ ...hold, error: ERROR, delay: 0 })),
        }),
        ['retry', 'retry'],
      )
      ok(
        await store.operations.complete({
          queue: 'q',
          items: holds.slice(5, 9).map((hold) => ({ ...hold, result: null })),
        }),
      )
      ok(
        await store.operations.complete({
          queue: 'q',
          items: jobs.slice(9).map((job) => ({ id: job.id, fence: job.fence, claim: job, result: null })),
        }),
      )
      assert.ok(
        (
          await store.operations.complete({ queue: 'q', items: holds.map((hold) => ({ ...hold, result: null })) })
        ).every((it) => it === 'stale'),
      )
      const again = (await claim(store)).jobs
      assert.equal(again.length, 5)
    })

    onStore('the capacity is shared out, and no more is stored', async (store) => {
      await assert.rejects(store.operations.configure({ queue: 'q', capacity: PARTITIONS - 1 }), (error) =>
        isMillpondError(error, 'InvalidOption'),
      )
      await store.operations.configure({ queue: 'q', capacity: 10 })
      const outcomes = await store.operations.push({ jobs: newJobs(100) })
      assert.equal(outcomes.filter(({ status }) => status === 'pushed').length, 10)
      const [stats] = await store.operations.stats({ queue: 'q' })
      assert.equal(stats?.capacity, 10)
      assert.equal(stats?.counts.waiting, 10)
    })

    onStore('lists are merged, by pages of any size', async (store, clock) => {
      const jobs = newJobs(30)
      for (const job of jobs) {
        await store.operations.push({ jobs: [job] })
        // Some in the same millisecond.
        if (Math.random() < 0.7) clock.now++
      }
      await store.operations.push({ jobs: newJobs(9, { delay: 500 }) })
      const held = (await claim(store, { limit: 12 })).jobs
      await store.operations.complete({
        queue: 'q',
        items: held.slice(0, 5).map((hold) => ({ ...hold, result: null })),
      })
      await store.operations.fail({
        queue: 'q',
        items: held.slice(5, 10).map((hold) => ({ ...hold, error: ERROR, delay: null })),
      })
      for (const [state, count] of [
        ['waiting', 18],
        ['scheduled', 9],
        ['running', 2],
        ['done', 5],
        ['dead', 5],
      ] as const) {
        const { jobs: whole } = await store.operations.list({ queue: 'q', state, limit: 100 })
        assert.equal(whole.length, count, state)
        for (const limit of [1, 2, 5]) {
          const pages: string[] = []
          let after: string | undefined
          for (;;) {
            const page = await store.operations.list({
              queue: 'q',
              state,
              limit,
              ...(after === undefined ? {} : { after }),
            })
            pages.push(...page.jobs.map(({ id }) => id))
            if (page.next === null) break
            after = page.next
          }
          assert.deepEqual(
            pages,
            whole.map(({ id }) => id),
            `${state} by ${limit}`,
          )
        }
        if (state === 'waiting') {
          const times = whole.map(({ pushedAt }) => pushedAt)
          assert.deepEqual(
            times,
            times.toSorted((a, b) => a - b),
          )
        }
      }
      assert.equal((await store.operations.requeue({ queue: 'q', limit: 3 })).requeued, 3)
      assert.equal((await store.operations.requeue({ queue: 'q', limit: 3 })).requeued, 2)
    })

    onStore('the number belongs to the queue, whatever others are opened with', async (store, _, prefix) => {
      const jobs = newJobs(50)
      await store.operations.push({ jobs })
      const other = await open(`${url}?prefix=${prefix}&partitions=2`, {})
      try {
        assert.ok((await other.operations.push({ jobs })).every(({ status }) => status === 'existing'))
        assert.deepEqual(idsOf((await claim(other)).jobs), idsOf(jobs))
      } finally {
        await other.close()
      }
    })

    onStore('a sweep reaches every partition, and keeps to its limit over all', async (store, clock) => {
      await store.operations.push({ jobs: newJobs(20, { delay: 10 }) })
      clock.now += 10
      const first = await store.operations.sweep({ limit: 15 })
      assert.deepEqual([first.promoted, first.more], [15, true])
      assert.equal((await store.operations.sweep({ limit: 15 })).promoted, 5)
      assert.equal((await claim(store, { lease: 5 })).jobs.length, 20)
      clock.now += 5
      assert.equal((await store.operations.sweep({ limit: 100 })).lost.length, 20)
    })
  })
}

describe('redis cluster', { skip: missingReason('redis-cluster') }, () => {
  test('twenty queues in many slots: bells for each, and look-ups over all', async () => {
    const url = serverUrl('redis-cluster') ?? ''
    const { store, prefix, dispose } = await openRedis(url)
    const sleeper = await open(`${url}?prefix=${prefix}`, {})
    try {
      const heard = new Set<string>()
      sleeper.listen(({ queue }) => heard.add(queue))
      const queues = Array.from({ length: 20 }, (_, i) => `q${i}`)
      for (let tries = 0; heard.size < queues.length; tries++) {
        assert.ok(tries < 1000, `bells only of ${[...heard]}`)
        await Promise.all(queues.map((queue) => claim(sleeper, { queue })))
        await store.operations.push({ jobs: queues.map((queue) => newJob({ queue })) })
        await sleep(5)
      }
      const jobs = (await Promise.all(queues.map((queue) => claim(store, { queue })))).flatMap(({ jobs }) => jobs)
      assert.ok(
        (await store.operations.find({ ids: jobs.map(({ id }) => id) })).every((record) => record?.state === 'running'),
      )
      assert.equal((await store.operations.stats({})).length, queues.length)
    } finally {
      await sleeper.close()
      await dispose()
    }
  })

  test('a master killed under load: with wait=1 nothing acknowledged is lost, and all goes on by itself', async (t) => {
    const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
    if (cluster === undefined) return
    const pond = await Millpond.open(`${cluster.url}?wait=1&partitions=6`, { timeout: 3000 })
    pond.on('error', () => undefined)
    const connections = async (): Promise<number> => {
      const running = cluster.nodes.filter(({ alive }) => alive)
      const lists = await Promise.all(running.map((node) => node.command('client', 'list')))
      return lists
        .join('\n')
        .split('\n')
        .filter((line) => /user=default/.test(line) && !/ flags=[SM] |cmd=client/.test(line)).length
    }
    try {
      const queue = pond.queue<number>('q', { lease: '3s' })
      const acknowledged = new Set<string>()
      const done = new Set<string>()
      let going = true
      queue.work((job) => void done.add(job.id), { concurrency: 20 })
      const push = async (): Promise<void> => {
        while (going) {
          try {
            acknowledged.add((await queue.push(1)).id)
          } catch (error) {
            assert.ok(isMillpondError(error, 'StoreUnavailable'), String(error))
          }
          await sleep(2)
        }
      }
      const pushing = Promise.all([push(), push(), push(), push()])
      await until(() => acknowledged.size > 100, 'some are acknowledged')
      await Promise.all(Array.from({ length: 20 }, (_, i) => pond.queue(`q${i}`).push(1)))
      const open = await connections()
      assert.ok(open >= 1 && open <= 10, `${open} connections`)
      const [victim] = await cluster.masters()
      await victim?.kill('SIGKILL')
      await cluster.ok()
      // Without it the new master has no replica that could confirm anything.
      await victim?.restart()
      await cluster.whole()
      const before = acknowledged.size
      for (let waited = 0; acknowledged.size < before + 300; waited++) {
        assert.ok(waited < 3000, 'pushes go on')
        await sleep(10)
      }
      going = false
      await pushing
      for (let waited = 0; [...acknowledged].some((id) => !done.has(id)); waited++) {
        assert.ok(
          waited < 2000,
          `${[...acknowledged].filter((id) => !done.has(id)).length} of ${acknowledged.size} not done`,
        )
        await sleep(10)
      }
    } finally {
      await pond.close({ timeout: 1000 })
    }
  })
})
