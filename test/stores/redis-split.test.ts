/** Queues that come back with another number of partitions, or on a server that was emptied, while processes that knew them stay open. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { Millpond } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { NULL, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { keysOf, openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''

/** All keys of the stores go, as after the removal of their queues, or FLUSHALL. */
async function emptied(prefix: string): Promise<void> {
  const client = new Redis(url)
  try {
    const keys = await keysOf(client, prefix)
    if (keys.length > 0) await client.unlink(keys)
  } finally {
    client.disconnect()
  }
}

/** Two stores of one prefix, with 1 and with 4 partitions. The queue was known to the first with 1, and comes back with 4. */
async function split(t: TestContext): Promise<{ before: Store; after: Store; prefix: string }> {
  const { store: before, prefix, dispose } = await openRedis(url, { partitions: 1 })
  const after = await open(url, { prefix, partitions: 4 })
  t.after(async () => {
    await after.close()
    await dispose()
  })
  await before.operations.push({ jobs: [newJob({ key: 'k' })] })
  assert.equal((await claim(before)).jobs.length, 1)
  await emptied(prefix)
  await after.operations.configure({ queue: 'q', attempts: 5 })
  return { before, after, prefix }
}

describe('a queue that is split anew', { skip: missingReason('redis') }, () => {
  test('a key is in one partition, whoever pushes', async (t) => {
    const { before, after } = await split(t)
    for (const key of ['a', 'b', 'c', 'd', 'e']) {
      const [[first], [second]] = await Promise.all([
        after.operations.push({ jobs: [newJob({ key })] }),
        before.operations
          .push({ jobs: [newJob({ key })] })
          .then(async () => before.operations.push({ jobs: [newJob({ key })] })),
      ])
      assert.equal(second?.status, 'existing')
      assert.ok(first !== undefined)
    }
    assert.equal((await after.operations.stats({ queue: 'q' }))[0]?.counts.waiting, 5)
  })

  test('whoever only works finds all jobs, and ends them', async (t) => {
    const { before, after } = await split(t)
    const jobs = newJobs(40)
    await after.operations.push({ jobs })
    const done = new Set<string>()
    await until(async () => {
      const { jobs: some } = await claim(before)
      const endings = some.map((job) => ({ id: job.id, fence: job.fence, claim: job, result: null }))
      for (const outcome of await before.operations.complete({ queue: 'q', items: endings }))
        assert.equal(outcome, 'ok')
      for (const { id } of some) done.add(id)
      return done.size === 40
    }, 'all are done')
    assert.equal((await after.operations.stats({ queue: 'q' }))[0]?.counts.done, 40)
  })

  test('what is pushed by one is ended by the other, with the claim and by id and fence', async (t) => {
    const { before, after } = await split(t)
    await before.operations.push({ jobs: newJobs(40) })
    const got: string[] = []
    await until(async () => {
      const { jobs } = await claim(after, { limit: 7 })
      const endings = jobs.map((job, i) => ({
        id: job.id,
        fence: job.fence,
        ...(i % 2 && { claim: job }),
        result: null,
      }))
      assert.deepEqual(
        new Set(
          await after.operations.extend({
            queue: 'q',
            lease: 1000,
            items: endings.map((hold) => ({ ...hold, progress: null })),
          }),
        ),
        new Set(jobs.length > 0 ? ['ok'] : []),
      )
      for (const outcome of await after.operations.complete({ queue: 'q', items: endings })) assert.equal(outcome, 'ok')
      got.push(...jobs.map(({ id }) => id))
      return got.length === 40
    }, 'all are done')
    assert.equal(new Set(got).size, 40)
  })

  test('a claim is ended where it came from, though the queue was known otherwise meanwhile', async (t) => {
    const { store, prefix, dispose } = await openRedis(url, { partitions: 4 })
    const other = await open(url, { prefix })
    t.after(async () => {
      await other.close()
      await dispose()
    })
    await store.operations.push({ jobs: newJobs(20, { group: 'g' }) })
    const { jobs } = await claim(store)
    assert.equal(jobs.length, 20)
    const client = new Redis(url)
    t.after(() => client.disconnect())
    // As a list that a failover has lost, and another process has made anew.
    await client.hset(`{${prefix}}:queues`, 'q', 1)
    await store.operations.stats({ queue: 'q' })
    const endings = jobs.map((job) => ({ id: job.id, fence: job.fence, claim: job, result: null }))
    assert.deepEqual(new Set(await store.operations.complete({ queue: 'q', items: endings })), new Set(['ok']))
  })

  test('a list that a partition does not agree with is mended by the next claim', async (t) => {
    const { store, prefix, dispose } = await openRedis(url, { partitions: 2 })
    t.after(dispose)
    await store.operations.push({ jobs: newJobs(20) })
    const client = new Redis(url)
    t.after(() => client.disconnect())
    for (const key of (await keysOf(client, prefix)).filter((key) => key.endsWith(':queue'))) {
      assert.equal(await client.hget(key, 'listed'), '2')
      await client.hset(key, 'listed', 1)
    }
    assert.equal((await claim(store)).jobs.length, 20)
  })
})

describe('a server that was emptied', { skip: missingReason('redis') }, () => {
  test('gives out no fence again, whoever makes the queue anew', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const store = await open(redis.url, {})
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    for (const by of [store, other]) {
      const job = newJob()
      await store.operations.push({ jobs: [job] })
      const [stale] = (await claim(store)).jobs
      assert.ok(stale)
      await redis.command('flushall')
      await by.operations.push({ jobs: [job] })
      const [fresh] = (await claim(other)).jobs
      assert.ok(fresh && fresh.id === job.id && fresh.fence > stale.fence, `${fresh?.fence} after ${stale.fence}`)
      assert.deepEqual(
        await store.operations.extend({ queue: 'q', lease: 1000, items: [{ ...stale, progress: null }] }),
        ['stale'],
      )
      assert.deepEqual(
        await store.operations.complete({ queue: 'q', items: [{ ...stale, claim: stale, result: NULL }] }),
        ['stale'],
      )
      assert.deepEqual(
        await other.operations.complete({ queue: 'q', items: [{ ...fresh, claim: fresh, result: NULL }] }),
        ['ok'],
      )
    }
  })

  test('another server behind the same address gives out other fences', async (t) => {
    const [one, two] = [await started(t, () => startRedis()), await started(t, () => startRedis())]
    if (one === undefined || two === undefined) return
    const proxy = await startProxy(one.port)
    t.after(() => proxy.stop())
    const store = await open(`redis://127.0.0.1:${proxy.port}`, { timeout: 2000 })
    const there = await open(two.url, {})
    t.after(() => Promise.all([store.close(), there.close()]))
    const job = newJob()
    await there.operations.push({ jobs: [job] })
    await store.operations.push({ jobs: [job] })
    const [stale] = (await claim(store)).jobs
    assert.ok(stale)
    proxy.retarget(two.port)
    proxy.cut()
    await until(
      async () => (await there.operations.stats({ queue: 'q' }))[0]?.counts.waiting === 1,
      'the other server answers',
    )
    const [fresh] = (await claim(there)).jobs
    assert.ok(fresh)
    const outcomes = await store.operations.complete({ queue: 'q', items: [{ ...stale, claim: stale, result: NULL }] })
    assert.deepEqual(outcomes, ['stale'])
  })

  test('an open pond works on, whatever its queue had', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const ponds = [await Millpond.open(`${redis.url}?partitions=3`), await Millpond.open(redis.url)]
    t.after(() => Promise.all(ponds.map((pond) => pond.close({ timeout: 100 }))))
    const done = new Set<number>()
    for (const pond of ponds) {
      pond.on('error', () => undefined)
      pond.queue<number>('q').work(({ data }) => void done.add(data))
    }
    const push = (from: number) =>
      Promise.all([0, 1, 2, 3].map((n) => ponds[n % 2]?.queue<number>('q').push(from + n, { key: `k${n}` })))
    await push(0)
    await until(() => done.size === 4, 'all are done')
    await redis.command('flushall')
    await push(4)
    await until(() => done.size === 8, 'all are done')
  })
})
