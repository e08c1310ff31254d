/** Connections that are accepted and never answer, as by a load balancer before a server that is gone: a new one takes their place. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { Cache } from '../../src/cache/index.ts'
import { Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'

async function proxied(t: TestContext) {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return undefined
  const proxy = await startProxy(redis.port)
  t.after(() => proxy.stop())
  return { redis, proxy, url: `redis://127.0.0.1:${proxy.port}` }
}

/** Cuts what is open. What connects now is accepted, and never hears a word; what connects later works. */
async function swallowNext(proxy: TcpProxy, connections: number): Promise<void> {
  await proxy.blackhole()
  proxy.cut()
  await until(() => proxy.connections >= connections, 'it has connected again')
  proxy.abandon()
  await proxy.allow()
}

describe('connections that never answer', { skip: missingReason('redis') }, () => {
  test('idle workers work again, soon', { timeout: 20_000 }, async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, redis, url } = server
    const pond = await Millpond.open(url, { timeout: 500 })
    const other = await open(redis.url, {})
    t.after(async () => {
      await Promise.all([pond.close({ timeout: 100 }), other.close()])
    })
    pond.on('error', () => undefined)
    let done = 0
    pond.queue('q').work(() => void done++)
    await other.operations.push({ jobs: [newJob()] })
    await until(() => done === 1, 'it works')
    for (let round = 2; round <= 5; round++) {
      await swallowNext(proxy, 2)
      await other.operations.push({ jobs: [newJob()] })
      await until(() => done === round, 'it works again')
    }
  })

  for (const [kind, clientOf] of [
    ['its own client', () => undefined],
    ['a client of the caller’s', (url: string) => new Redis(url)],
  ] as const) {
    for (const [what, silence] of [
      ['that is silent from the beginning', (proxy: TcpProxy) => swallowNext(proxy, 1)],
      ['that falls silent', async (proxy: TcpProxy) => proxy.abandon()],
    ] as const) {
      test(`a cache with ${kind} replaces a connection ${what}`, { timeout: 25_000 }, async (t) => {
        const server = await proxied(t)
        if (server === undefined) return
        const { proxy, url } = server
        const client = clientOf(url)
        client?.on('error', () => undefined)
        const cache = await Cache.open(url, { timeout: 300, onError: () => undefined, ...(client && { client }) })
        t.after(async () => {
          await cache.close()
          client?.disconnect()
        })
        await cache.set('a', 1, { ttl: '1h' })
        await silence(proxy)
        await until(
          () =>
            cache.set('b', 2, { ttl: '1h' }).then(
              () => true,
              () => false,
            ),
          'it reaches Redis again',
        )
      })
    }
  }

  test('a large push on a slow network gets more time, and so do the calls behind it', {
    timeout: 60_000,
  }, async (t) => {
    const server = await proxied(t)
    if (server === undefined) return
    const { proxy, url } = server
    const store = await open(url, { timeout: 300 })
    t.after(() => store.close())
    await store.operations.push({ jobs: [newJob({ queue: 'small' })] })
    proxy.slow(4_000_000)
    const large = newJobs(1, { data: { encoding: 'bytes', body: new Uint8Array(8_000_000) } })
    const pushed = store.operations.push({ jobs: large })
    const { jobs } = await claim(store, { queue: 'small' })
    assert.equal(jobs.length, 1)
    assert.equal((await pushed)[0]?.status, 'pushed')
  })
})
