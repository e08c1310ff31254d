/** Clients of the caller's with options of all kinds, passwords, and databases that a server refuses. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Cluster, Redis } from 'ioredis'
import { Cache } from '../../src/cache/index.ts'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { freshPrefix, removePrefix } from './redis-fixture.ts'

/** What a pond and a cache do on a client comes out as always. */
async function works(url: string, prefix: string, options: Record<string, unknown>): Promise<void> {
  const pond = await Millpond.open(url, { prefix, ...options })
  try {
    const queue = pond.queue<number>('q', { capacity: 100, limits: { running: 50, rate: '1000/s' } })
    const { id } = await queue.push(1, { key: 'k' })
    assert.equal((await queue.push(2, { key: 'k' })).id, id)
    assert.equal((await pond.stats())[0]?.counts.waiting, 1)
    queue.work(({ data }) => data + 1)
    assert.equal(await pond.result(id), 2)
    assert.equal((await pond.job(id))?.state, 'done')
  } finally {
    await pond.close()
  }
  const { wait: _, ...rest } = options
  const cache = await Cache.open(url, { prefix, ...rest })
  try {
    const get = cache.wrap(() => ({ a: 1 }), { key: () => 'k', ttl: '1m', tags: ['t'] })
    assert.deepEqual([await get(), await get()], [{ a: 1 }, { a: 1 }])
    await cache.invalidateTag('t')
    assert.deepEqual(await get(), { a: 1 })
  } finally {
    await cache.close()
  }
}

const CHANGING = { enableAutoPipelining: true, stringNumbers: true, commandTimeout: 1 }

describe('options of a client', { skip: missingReason('redis') || missingReason('redis-cluster') }, () => {
  test('change no answer', async (t) => {
    const url = serverUrl('redis') ?? ''
    const client = new Redis(url, CHANGING)
    client.on('error', () => undefined)
    const prefix = freshPrefix()
    t.after(async () => {
      client.disconnect()
      await removePrefix(url, prefix)
    })
    await works(url, prefix, { client })
  })

  test('of a cluster change no answer', async (t) => {
    const url = serverUrl('redis-cluster') ?? ''
    const own = { enableAutoPipelining: true, scaleReads: 'slave', redisOptions: CHANGING } as const
    const client = new Cluster(nodesOf(url), own)
    client.on('error', () => undefined)
    const prefix = freshPrefix()
    t.after(async () => {
      client.disconnect()
      await removePrefix(url, prefix)
    })
    await works(url, prefix, { client })
  })
})

const nodesOf = (url: string) =>
  url
    .replace('redis://', '')
    .split(',')
    .map((node) => {
      const [host = '', port] = node.split(':')
      return { host, port: Number(port) }
    })

describe('passwords', { skip: missingReason('redis') }, () => {
  test('of a server: by the URL, with replicas, by a client', async (t) => {
    const master = await started(t, () => startRedis({ args: ['--requirepass', 'secret', '--masterauth', 'secret'] }))
    if (master === undefined) return
    const url = master.url.replace('//', '//:secret@')
    const client = new Redis(url)
    t.after(() => client.disconnect())
    await works(url, 'a', {})
    await works(url, 'b', { client })
    const store = await open(url, { client, wait: 1, timeout: 500 })
    t.after(() => store.close())
    // There is no replica, which is another error than that of a missing password.
    await assert.rejects(store.operations.push({ jobs: [newJob()] }), /0 of 1 replicas/)
  })

  test('of a cluster: by the URL, with replicas, by a client', async (t) => {
    const cluster = await started(t, () => startRedisCluster())
    if (cluster === undefined) return
    for (const node of cluster.nodes) {
      await node.command('config', 'set', 'masterauth', 'secret')
      await node.command('config', 'set', 'requirepass', 'secret')
    }
    const url = cluster.url.replace('//', '//:secret@')
    const client = new Cluster(nodesOf(cluster.url), { redisOptions: { password: 'secret' } })
    client.on('error', () => undefined)
    t.after(() => client.disconnect())
    await works(url, 'a', { wait: 1 })
    await works(url, 'b', { client })
    await works(url, 'c', { client, wait: 1 })
  })
})

const unavailable = (message: RegExp) => (error: unknown) => {
  assert.ok(isMillpondError(error, 'StoreUnavailable'), String(error))
  assert.match(error.message, message)
  return true
}

/** A server whose user of that name may do all but what is forbidden, on database 2. */
async function withUser(t: TestContext): Promise<{ redis: RedisServer; url: string } | undefined> {
  const redis = await started(t, () => startRedis({ args: ['--databases', '4'] }))
  if (redis === undefined) return undefined
  await redis.command('acl', 'setuser', 'app', 'on', '>secret', '~*', '&*', '+@all')
  return { redis, url: `${redis.url.replace('//', '//app:secret@')}/2` }
}

const keysOf = async (redis: RedisServer, db: number): Promise<number> =>
  Number(/\d+/.exec(await redis.command('-n', `${db}`, 'dbsize'))?.[0])

describe('the database', { skip: missingReason('redis') }, () => {
  test('that a server does not have is refused, by the queue and by the cache', async (t) => {
    const server = await withUser(t)
    if (server === undefined) return
    const url = server.url.replace(/2$/, '99')
    const client = new Redis(url)
    client.on('error', () => undefined)
    t.after(() => client.disconnect())
    for (const options of [{}, { client }, { wait: 1 }])
      await assert.rejects(open(url, options), unavailable(/refuses database 99/))
    for (const options of [{}, { client }])
      await assert.rejects(Cache.open(url, options), unavailable(/refuses database 99/))
    assert.equal(await keysOf(server.redis, 0), 0)
  })

  test('is chosen anew on each connection: where that is refused, nothing goes into another one', async (t) => {
    const server = await withUser(t)
    if (server === undefined) return
    const { redis, url } = server
    const store = await open(url, { timeout: 500 })
    const cache = await Cache.open(url, { timeout: 500, onError: () => undefined })
    t.after(() => Promise.all([store.close(), cache.close()]))
    await store.operations.push({ jobs: [newJob()] })
    await cache.set('a', 1, { ttl: '1h' })
    await redis.command('acl', 'setuser', 'app', '-select')
    await redis.command('client', 'kill', 'user', 'app')
    await until(
      () =>
        store.operations.push({ jobs: [newJob()] }).then(
          () => false,
          (error: unknown) => /refuses database 2/.test(String(error)),
        ),
      'a push is refused for that reason',
    )
    await until(
      () =>
        cache.set('b', 1, { ttl: '1h' }).then(
          () => false,
          (error: unknown) => /refuses database 2/.test(String(error)),
        ),
      'the cache is refused for that reason',
    )
    assert.equal(await keysOf(redis, 0), 0)
    await redis.command('acl', 'setuser', 'app', '+select')
    await until(
      async () => (await store.operations.push({ jobs: newJobs(1) }).catch(() => [])).length > 0,
      'pushes work again',
    )
    assert.ok((await claim(store)).jobs.length >= 2)
    await until(
      () =>
        cache.set('b', 1, { ttl: '1h' }).then(
          () => true,
          () => false,
        ),
      'the cache works again',
    )
    assert.equal(await keysOf(redis, 0), 0)
  })
})
