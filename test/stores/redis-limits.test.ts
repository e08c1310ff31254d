/** Limits and groups on Redis: what no vector shows. Many claims at once, thousands of groups, a large backlog, partitions. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { connect, keysOf, openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''

/** Of each group so many jobs, in turns. */
const grouped = (groups: number, each: number): NewJob[] =>
  Array.from({ length: groups * each }, (_, i) => newJob({ group: `g${i % groups}` }))

async function pushAll(store: Store, jobs: readonly NewJob[]): Promise<void> {
  for (let at = 0; at < jobs.length; at += 500) await store.operations.push({ jobs: jobs.slice(at, at + 500) })
}

type Check = (store: Store, clock: { now: number }, other: Store, prefix: string) => Promise<void>

/** On a store, and another one of the same queues. */
const withStore = async (check: Check): Promise<void> => {
  const clock = { now: Date.now() }
  const { store, prefix, dispose } = await openRedis(url, { clock: () => clock.now })
  const other = await open(url, { prefix, clock: () => clock.now })
  try {
    await check(store, clock, other, prefix)
  } finally {
    await other.close()
    await dispose()
  }
}

describe('limits on Redis', { skip: missingReason('redis') }, () => {
  test('claims at once never exceed the queue’s limit', () =>
    withStore(async (store, _, other) => {
      await store.operations.configure({ queue: 'q', running: 7 })
      await store.operations.push({ jobs: newJobs(400) })
      for (let done = 0; done < 400; ) {
        const claims = await Promise.all([store, other, store].map((one) => claim(one, { limit: 5 })))
        const jobs = claims.flatMap((one) => one.jobs)
        assert.ok(jobs.length <= 7)
        done += jobs.length
        await store.operations.complete({ queue: 'q', items: jobs.map((job) => ({ ...job, result: null })) })
      }
    }))

  test('a rate is exact over two claimers', () =>
    withStore(async (store, clock, other) => {
      await store.operations.configure({ queue: 'q', rate: { count: 10, per: 1_000, burst: 1 } })
      await store.operations.push({ jobs: newJobs(100) })
      const starts: number[] = []
      for (let ms = 0; ms < 2_000; ms += 5) {
        clock.now += 5
        const claims = await Promise.all([claim(store), claim(other, { worker: 'v' })])
        for (const { jobs } of claims) starts.push(...jobs.map(() => clock.now))
      }
      assert.equal(starts.length, 20)
      for (const [i, start] of starts.entries()) assert.ok(i === 0 || start - (starts[i - 1] ?? 0) >= 100)
    }))

  test('jobs of one group are in order, and can be cancelled, released and counted', () =>
    withStore(async (store) => {
      await store.operations.configure({ queue: 'q', groupRunning: 100 })
      const jobs = newJobs(30, { group: 'g' })
      const ids = jobs.map(({ id }) => id)
      await pushAll(store, jobs)
      const [first] = (await claim(store, { limit: 1 })).jobs
      assert.ok(first !== undefined)
      assert.equal(first.id, ids[0])
      assert.deepEqual(await store.operations.cancel({ ids: [ids[2] ?? '', ids[20] ?? ''] }), [
        'cancelled',
        'cancelled',
      ])
      const urgent = newJob({ group: 'g', priority: 5 })
      await store.operations.push({ jobs: [urgent] })
      const some = [urgent.id, ids[1] ?? '', ids[3] ?? '', ids[29] ?? '']
      assert.deepEqual(await Promise.all(some.map((id) => store.operations.ahead({ id }))), [0, 1, 2, 27])
      assert.equal((await store.operations.groups({ queue: 'q', limit: 5 }))?.[0]?.waiting, 28)
      assert.deepEqual(await store.operations.release({ queue: 'q', items: [first] }), ['ok'])
      const left = (await claim(store)).jobs.map(({ id }) => id)
      assert.deepEqual(left, [urgent.id, ...ids.filter((_, i) => i !== 2 && i !== 20)])
    }))

  test('a backlog is moved once, also where its groups have had turns meanwhile', () =>
    withStore(async (store) => {
      const jobs = grouped(3, 800)
      await pushAll(store, jobs)
      await store.operations.configure({ queue: 'q', grouped: true })
      const late = grouped(3, 10)
      await pushAll(store, late)
      const ids: string[] = []
      for (let more = true; more; ) {
        const claimed = await claim(store, { limit: 7 })
        ids.push(...claimed.jobs.map(({ id }) => id))
        more = claimed.jobs.length > 0
      }
      assert.deepEqual(ids.toSorted(), [...jobs, ...late].map(({ id }) => id).toSorted())
    }))

  /** How many commands the server has run, those of scripts included. */
  const commandsOf = async (server: RedisServer): Promise<number> => {
    const stats = await server.command('info', 'commandstats')
    return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  }

  test('the start of a job costs a look into its line, and no other command of its own; its end costs none', async () => {
    const server = await startRedis()
    const store = await open(server.url, {})
    try {
      await store.operations.configure({ queue: 'q', groupRunning: 2 })
      await pushAll(store, grouped(400, 4))
      assert.equal((await claim(store, { limit: 400 })).jobs.length, 400)
      const before = await commandsOf(server)
      const { jobs } = await claim(store, { limit: 400 })
      assert.equal(jobs.length, 400)
      await store.operations.complete({ queue: 'q', items: jobs.map((job) => ({ ...job, result: null })) })
      const commands = (await commandsOf(server)) - before
      assert.ok(commands < 400 + 200, `${commands} commands`)
    } finally {
      await store.close()
      await server.stop()
    }
  })

  test('ten thousand blocked groups cost a claim no command more', async () => {
    const server = await startRedis()
    const store = await open(server.url, {})
    try {
      const commands = () => commandsOf(server)
      const costs: number[] = []
      await store.operations.configure({ queue: 'q', groupRunning: 1 })
      for (const groups of [10, 10_000]) {
        await pushAll(store, grouped(groups, 2))
        // Until each group runs a job.
        while ((await claim(store)).jobs.length > 0);
        await store.operations.push({ jobs: [newJob({ group: `free${groups}` })] })
        const before = await commands()
        assert.equal((await claim(store)).jobs.length, 1)
        costs.push((await commands()) - before)
      }
      const [few = 0, many = 0] = costs
      // `info` itself, and the ticks of a sweep.
      assert.ok(many <= few + 5, `${many} commands beside 10,000 blocked groups, ${few} beside 10`)
      const listed = (await store.operations.groups({ queue: 'q', limit: 20_000 })) ?? []
      assert.equal(listed.length, 10_002)
    } finally {
      await store.close()
      await server.stop()
    }
  })

  test('ten thousand groups at their limit, or idle, cost stats no command each', async () => {
    const server = await startRedis()
    const store = await open(server.url, {})
    try {
      const limitsNow = async () => (await store.operations.stats({ queue: 'q' }))[0]
      await store.operations.configure({ queue: 'q', groupRunning: 1 })
      const costs: number[] = []
      for (const groups of [10, 10_000]) {
        await pushAll(store, grouped(groups, 2))
        while ((await claim(store)).jobs.length > 0);
        await store.operations.push({ jobs: [newJob({ group: `new${groups}` })] })
        const before = await commandsOf(server)
        assert.equal((await limitsNow())?.groupsAtLimit, groups)
        costs.push((await commandsOf(server)) - before)
        await claim(store)
      }
      const [few = 0, many = 0] = costs
      assert.ok(many <= few + 15, `${many} commands beside 10,000 groups, ${few} beside 10`)
      await store.operations.configure({ queue: 'q', groupRunning: 2 })
      for (let more = true; more; ) {
        const { jobs, retryAfter } = await claim(store)
        more = jobs.length > 0 || retryAfter === 0
      }
      // Of the first ten groups two jobs wait. What follows no claim has seen.
      assert.equal((await limitsNow())?.groupsAtLimit, 10)
      await store.operations.push({ jobs: [newJob({ group: 'g50' })] })
      assert.equal((await limitsNow())?.groupsAtLimit, 11)
      await store.operations.limitGroup({ queue: 'q', group: 'g50', limits: { running: 4, rate: null, weight: 1 } })
      assert.equal((await limitsNow())?.groupsAtLimit, 10)
    } finally {
      await store.close()
      await server.stop()
    }
  })

  test('a backlog of thousands is moved into lines, in turns all along, and none of it is lost', () =>
    withStore(async (store) => {
      const jobs = grouped(5, 700)
      await pushAll(store, jobs)
      await store.operations.configure({ queue: 'q', groupRunning: 3 })
      const ids = new Set<string>()
      let short = 0
      while (ids.size < jobs.length) {
        const claimed = await claim(store)
        const perGroup = Map.groupBy(claimed.jobs, ({ group }) => group)
        for (const own of perGroup.values()) assert.ok(own.length <= 3)
        assert.ok(claimed.jobs.length > 0)
        if (claimed.retryAfter === 0) short++
        for (const { id } of claimed.jobs) ids.add(id)
        await store.operations.complete({ queue: 'q', items: claimed.jobs.map((job) => ({ ...job, result: null })) })
      }
      assert.ok(short > 0, 'claims that came short said to come back')
    }))

  test('changed limits of thousands of groups hold at once', () =>
    withStore(async (store) => {
      await store.operations.configure({ queue: 'q', grouped: true })
      await pushAll(store, grouped(3_000, 2))
      await claim(store, { limit: 1 })
      await store.operations.configure({ queue: 'q', groupRunning: 1 })
      const jobs: (string | null)[] = []
      for (let more = true; more; ) {
        const claimed = await claim(store)
        jobs.push(...claimed.jobs.map(({ group }) => group))
        more = claimed.retryAfter === 0 || claimed.jobs.length === 1_000
      }
      assert.equal(new Set(jobs).size, jobs.length)
      assert.ok(jobs.length >= 2_999)
      // And a raised one for all.
      await store.operations.configure({ queue: 'q', groupRunning: 2 })
      let raised = 0
      for (let more = true; more; ) {
        const claimed = await claim(store)
        raised += claimed.jobs.length
        more = claimed.retryAfter === 0 || claimed.jobs.length === 1_000
      }
      assert.equal(raised, 6_000 - 1 - jobs.length)
    }))

  test('idle groups are forgotten, and nothing of them stays behind', () =>
    withStore(async (store, clock, _, prefix) => {
      await store.operations.configure({ queue: 'q', groupRunning: 1, keepDone: 0 })
      await store.operations.push({
        jobs: ['busy', 'busy', 'busy', 'later', 'later'].map((group) => newJob({ group })),
      })
      const held = (await claim(store)).jobs
      await pushAll(store, grouped(2_000, 1))
      for (let left = 2_000; left > 0; ) {
        const { jobs } = await claim(store)
        left -= jobs.length
        await store.operations.complete({ queue: 'q', items: jobs.map((job) => ({ ...job, result: null })) })
      }
      const client = connect(url)
      const sweepAll = async (): Promise<void> => {
        while ((await store.operations.sweep({ limit: 1_000 })).more);
      }
      const counts = async () => {
        const keys = await keysOf(client, prefix)
        const key = (name: string) => keys.find((one) => one.endsWith(`:${name}`)) ?? ''
        return [
          await client.hlen(key('groups')),
          await client.hlen(key('slots')),
          await client.zcard(key('names')),
          await client.zcard(key('unused')),
        ]
      }
      try {
        clock.now += 9_999
        await sweepAll()
        assert.equal((await counts())[0], 2_002)
        clock.now += 1
        await sweepAll()
        assert.deepEqual(await counts(), [2, 2, 2, 0])
        // The last job of a group runs for long: the group goes some time after its end.
        const later = held.filter(({ group }) => group === 'later')
        await store.operations.complete({ queue: 'q', items: later.map((job) => ({ ...job, result: null })) })
        const last = (await claim(store)).jobs
        assert.deepEqual(
          last.map(({ group }) => group),
          ['later'],
        )
        clock.now += 10_000
        await sweepAll()
        assert.deepEqual(await counts(), [2, 2, 2, 1])
        await store.operations.complete({ queue: 'q', items: last.map((job) => ({ ...job, result: null })) })
        clock.now += 10_000
        await sweepAll()
        assert.deepEqual(await counts(), [1, 1, 1, 0])
      } finally {
        client.disconnect()
      }
    }))
})
