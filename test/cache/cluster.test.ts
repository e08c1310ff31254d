/** A Redis Cluster whose masters die, and a client that is the caller's own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Cache } from '../../src/cache/index.ts'
import { started } from '../servers/fixtures.ts'
import { startRedisCluster } from '../servers/redis-cluster.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { untilCalm } from '../support/until.ts'
import { freshPrefix, openCache } from './fixture.ts'

test('a master dies: every call is answered in time, and invalidations are heard again once there is another', {
  timeout: 120_000,
}, async (t) => {
  const cluster = await started(t, () => startRedisCluster({ nodeTimeout: 1000 }))
  if (cluster === undefined) return
  const options = { drift: 1000, timeout: 500, onError: () => undefined } as const
  const prefix = freshPrefix()
  await using one = await Cache.open(cluster.url, { ...options, prefix })
  await using two = await Cache.open(cluster.url, { ...options, prefix })
  let version = 1
  const wrapped = { key: (id: number) => `k${id}`, ttl: '1h', timeout: '5s' } as const
  const [first, second] = [one.wrap(() => version, wrapped), two.wrap(() => version, wrapped)]
  const ids = Array.from({ length: 30 }, (_, id) => id)
  const all = (get: (id: number) => Promise<number>) => Promise.all(ids.map((id) => get(id)))
  await all(first)
  await all(second)
  const [master] = await cluster.masters()
  await master?.kill('SIGKILL')
  const end = performance.now() + 3000
  while (performance.now() < end) {
    await all(first)
    await all(second)
    await sleep(20)
  }
  await cluster.ok()
  await untilCalm(async () => one.stats().tracking && two.stats().tracking, 'both hear again')
  version = 2
  await untilCalm(async () => {
    for (const id of ids) await one.invalidate(`k${id}`)
    return true
  }, 'all are invalidated')
  await untilCalm(async () => {
    const answers = [...(await all(first)), ...(await all(second))]
    return answers.every((answer) => answer === 2)
  }, 'everyone knows')
})

test("a client of the caller's stays open", { skip: missingReason('redis') }, async (t) => {
  const url = serverUrl('redis') ?? ''
  const client = new Redis(url)
  t.after(() => client.disconnect())
  const cache = await openCache(t, { url }, { client })
  const get = cache.wrap(() => ({ a: 1 }), { key: () => 'k', ttl: '1m' })
  assert.deepEqual(await get(), { a: 1 })
  await cache.close()
  assert.equal(await client.ping(), 'PONG')
})
