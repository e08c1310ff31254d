/** Servers and connections that fall silent without a word: they are given up, and nothing that was claimed meanwhile is used up. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim, first } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { missingReason } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const unavailable = (error: unknown): boolean => isMillpondError(error, 'StoreUnavailable')
/** What it resolves to; undefined: the store could not be reached. */
const tried = <T>(call: Promise<T>): Promise<T | undefined> =>
  call.catch((error: unknown) => {
    assert.ok(unavailable(error), String(error))
    return undefined
  })

async function proxied(t: TestContext) {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return undefined
  const proxy = await startProxy(redis.port)
  t.after(() => proxy.stop())
  return { redis, proxy, url: `redis://127.0.0.1:${proxy.port}` }
}

describe('redis store: silence', { skip: missingReason('redis') }, () => {
  test('a connection that falls silent is given up for a new one, bells included', async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, redis, url } = server
    const store = await open(url, { timeout: 300 })
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    let bells = 0
    store.listen(({ kind }) => {
      if (kind === 'work') bells++
    })
    await store.operations.push({ jobs: [newJob()] })
    proxy.abandon()
    await assert.rejects(store.operations.push({ jobs: [newJob()] }), unavailable)
    await until(
      async () => (await tried(store.operations.push({ jobs: [newJob()] }))) !== undefined,
      'pushes work again',
    )
    await claim(store)
    const before = bells
    await until(async () => {
      await tried(claim(store))
      await other.operations.push({ jobs: [newJob()] })
      return bells > before
    }, 'bells come again')
  })

  test('a cluster’s master stopped and its replica promoted: an open store goes on', async (t) => {
    const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
    if (cluster === undefined) return
    const store = await open(cluster.url, { timeout: 1000 })
    t.after(() => store.close())
    await store.operations.push({ jobs: newJobs(60) })
    const victim = await cluster.masterOf()
    await victim.kill('SIGSTOP')
    try {
      const others = cluster.nodes.filter((node) => node !== victim)
      const promoted = async () =>
        (await Promise.all(others.map((node) => node.command('role')))).filter((role) => role.startsWith('master'))
      await until(async () => (await promoted()).length === 3, 'a replica has taken its place')
      await until(async () => (await tried(store.operations.push({ jobs: newJobs(60) }))) !== undefined, 'pushes work')
      await until(async () => ((await tried(claim(store)))?.jobs.length ?? 0) > 0, 'claims work')
    } finally {
      await victim.kill('SIGCONT')
    }
  })

  test('a claim whose answer was swallowed uses up no attempt', async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, redis, url } = server
    const store = await open(url, { timeout: 300 })
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    const jobs = newJobs(35, { attempts: 1 })
    await store.operations.push({ jobs })
    await claim(store, { queue: 'none' })
    proxy.mute()
    await assert.rejects(claim(store, { lease: 600_000 }), unavailable)
    assert.equal((await other.operations.stats({ queue: 'q' }))[0]?.counts.running, 35, 'the server has given them out')
    proxy.cut()
    await proxy.allow()
    await until(
      async () => (await other.operations.stats({ queue: 'q' }))[0]?.counts.running === 0,
      'they are given back',
    )
    const { jobs: again } = await claim(other)
    assert.deepEqual(
      again.map(({ id, attempt }) => [id, attempt]),
      jobs.map(({ id }) => [id, 1]),
    )
  })

  test('a claim that reaches a stopped server too late gives nothing', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const store = await open(redis.url, { timeout: 300 })
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    await store.operations.push({ jobs: newJobs(5, { attempts: 1 }) })
    // So that it knows the server's time.
    await claim(store, { queue: 'none' })
    process.kill(redis.pid, 'SIGSTOP')
    await assert.rejects(claim(store, { lease: 600_000 }), unavailable)
    process.kill(redis.pid, 'SIGCONT')
    await until(
      async () => (await tried(store.operations.find({ ids: [newJob().id] }))) !== undefined,
      'the store is back',
    )
    await until(async () => (await other.operations.stats({ queue: 'q' }))[0]?.counts.running === 0, 'nothing is held')
    const { jobs } = await claim(other)
    assert.deepEqual(
      jobs.map(({ attempt }) => attempt),
      [1, 1, 1, 1, 1],
    )
  })

  test('replicas that do not answer hold up no claim and no lease', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const store = await open(redis.url, { wait: 1, timeout: 2000 })
    t.after(() => store.close())
    await assert.rejects(store.operations.push({ jobs: [newJob(), newJob()] }), /0 of 1 replicas/)
    const order: string[] = []
    const pushes = [1, 2, 3].map(() =>
      store.operations
        .push({ jobs: [newJob()] })
        .catch((error: unknown) => order.push(unavailable(error) ? 'push' : String(error))),
    )
    const job = first((await claim(store, { limit: 1 })).jobs)
    const completing = store.operations
      .complete({ queue: 'q', items: [{ ...first((await claim(store, { limit: 1 })).jobs), result: null }] })
      .catch(() => order.push('complete'))
    for (let i = 0; i < 5; i++)
      assert.deepEqual(
        await store.operations.extend({ queue: 'q', lease: 5000, items: [{ ...job, progress: null }] }),
        ['ok'],
      )
    order.push('extended')
    await Promise.all([...pushes, completing])
    assert.deepEqual(order, ['extended', 'push', 'push', 'push', 'complete'])
  })

  test('a client with default options: answers lost with the connection make no ending stale and no new id existing', async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, redis, url } = server
    const { Redis } = await import('ioredis')
    const client = new Redis(url)
    client.on('error', () => undefined)
    const store = await open(url, { client })
    const other = await open(redis.url, {})
    t.after(async () => {
      await Promise.all([store.close(), other.close()])
      client.disconnect()
    })
    const counts = async () => (await other.operations.stats({ queue: 'q' }))[0]?.counts
    /** The server acts, and its answer is lost. */
    const unanswered = async <T>(call: () => Promise<T>, acted: () => Promise<boolean>): Promise<T> => {
      proxy.mute()
      const calling = call()
      await until(acted, 'the server has acted')
      proxy.cut()
      await proxy.allow()
      return calling
    }
    await store.operations.configure({ queue: 'q', keepDead: 1000 })
    // So that the server knows the scripts: that it does not would be an answer, too.
    await other.operations.push({ jobs: [newJob({ queue: 'first' })] })
    const [known] = (await claim(other, { queue: 'first' })).jobs
    assert.ok(known)
    await other.operations.complete({ queue: 'first', items: [{ ...known, result: null }] })
    for (let round = 1; round <= 3; round++) {
      const jobs = newJobs(20, { attempts: 1 })
      const pushed = await unanswered(
        () => store.operations.push({ jobs }),
        async () => (await counts())?.waiting === 20,
      )
      assert.deepEqual(new Set(pushed.map(({ status }) => status)), new Set(['pushed']))
      const held = await unanswered(
        () => claim(store, { lease: 600_000 }),
        async () => (await counts())?.running === 20,
      )
      assert.equal(held.jobs.length, 20)
      const completions = held.jobs.map((job) => ({ ...job, claim: job, result: null }))
      const outcomes = await unanswered(
        () => store.operations.complete({ queue: 'q', items: completions }),
        async () => (await counts())?.done === 20 * round,
      )
      assert.deepEqual(new Set(outcomes), new Set(['ok']))
    }
  })

  test('a server that was emptied is told the settings again', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const pond = await Millpond.open(redis.url)
    t.after(() => pond.close())
    const queue = pond.queue<number>('q', { capacity: 2 })
    await queue.push(1)
    await redis.command('flushall')
    await queue.push(1)
    await until(async () => {
      const [stats] = await pond.stats()
      return stats?.capacity === 2
    }, 'the capacity holds again')
    await queue.push(2)
    await assert.rejects(queue.push(3), (error) => isMillpondError(error, 'QueueFull'))
  })

  test('a pond closes with the server away, and counts as finished only what the store knows', async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, url } = server
    // So long that it would outlast the test.
    const pond = await Millpond.open(url, { timeout: 600_000 })
    pond.on('error', () => undefined)
    const queue = pond.queue<number>('q')
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let begun = 0
    queue.work(async () => {
      begun++
      await released
    })
    await queue.pushMany([1, 2, 3, 4, 5])
    await until(() => begun === 5, 'they run')
    await proxy.blackhole()
    const lost = queue.push(6).catch(() => 'rejected')
    const closing = pond.close({ timeout: '1s' })
    release()
    const { finished } = await closing
    assert.equal(finished, 0)
    assert.equal(await lost, 'rejected')
    proxy.cut()
  })
})
