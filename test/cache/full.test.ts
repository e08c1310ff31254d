/** Redis answers but takes nothing: values are in the process alone, and nothing can be heard of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cache, type WrapOptions } from '../../src/cache/index.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { gated, quiet } from './fixture.ts'

const DRIFT = 400
const HOUR = '1h'

test('Redis is full: values are kept, but none that another process invalidates for longer than the drift', async (t) => {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return
  const options = { drift: DRIFT, onError: quiet }
  const [here, there] = [await Cache.open(redis.url, options), await Cache.open(redis.url, options)]
  t.after(() => Promise.all([here.close(), there.close()]))
  await redis.command('config', 'set', 'maxmemory', '1')
  await assert.rejects(here.set('k', 1, { ttl: HOUR }), coded('StoreFull'))
  await assert.rejects(here.invalidateTag('other'), coded('StoreFull'))

  const kinds: Partial<WrapOptions<void>>[] = [
    {},
    { tags: ['t'] },
    { stale: HOUR },
    { tags: ['t'], staleIfError: HOUR },
  ]
  await Promise.all(
    kinds.map(async (kind, index) => {
      let value = 'old'
      let loads = 0
      const load = () => {
        loads++
        return value
      }
      const key = `k${index}`
      const get = here.wrap(load, { key: () => key, ttl: HOUR, ...kind })
      const began = performance.now()
      for (let tries = 0; tries < 10; tries++) assert.equal(await get(), 'old')
      const took = performance.now() - began
      assert.ok(loads <= Math.ceil(took / DRIFT), `case ${index}: ${loads} loads in ${took} ms`)
      value = 'new'
      const loaded = performance.now()
      await there.invalidate(key)
      await until(() => performance.now() > loaded + DRIFT)
      assert.equal(await get(), 'new', `case ${index}`)
    }),
  )
  await until(() => here.stats().tracking)

  // Nor where the load that is to replace it takes longer than that, and fails.
  const failing = async (key: string, change: () => Promise<unknown>) => {
    const { load, calls, call } = gated<void, string>()
    const get = here.wrap(load, { key: () => key, ttl: 50, jitter: 0, staleIfError: HOUR })
    const first = get()
    await until(() => calls.length === 1)
    call(0).resolve('old')
    assert.equal(await first, 'old')
    const loaded = performance.now()
    await there.invalidate(key)
    await until(() => performance.now() > loaded + 50)
    await change()
    await until(() => {
      void get().catch(() => undefined)
      return calls.length === 2
    })
    const second = get()
    await until(() => performance.now() > loaded + 2 * DRIFT)
    call(1).reject(new RangeError('down'))
    await assert.rejects(second, RangeError)
  }
  await failing('fails', async () => undefined)
  await failing('fails and Redis has room again', () => redis.command('config', 'set', 'maxmemory', '0'))
  const get = here.wrap(() => 'stored', { key: () => 'stored', ttl: HOUR })
  await get()
  assert.equal(await there.get('stored'), 'stored')
})
