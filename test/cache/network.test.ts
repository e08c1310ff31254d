/** Redis is cut off, silent or gone for a while: nothing hangs past its limit, errors have codes, and what is known is answered. */

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cache, type CacheOptions } from '../../src/cache/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { startProxy } from '../servers/proxy.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { depth } from '../support/depth.ts'
import { untilCalm } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { clientOf, freshPrefix, openCache } from './fixture.ts'

const url = serverUrl('redis') ?? 'redis://127.0.0.1:1'
/** Of an outage, in ms; the experiment's is 10 s: MILLPOND_CACHE_OUTAGE. */
const OUTAGE = depth(1500, 10_000)

describe('a bad network', { skip: missingReason('redis') }, () => {
  /** One cache on a line that the test controls, and another on a good one. */
  async function pair(t: TestContext, options: CacheOptions = {}) {
    const proxy = await startProxy(Number(new URL(url).port))
    t.after(() => proxy.stop())
    const prefix = freshPrefix()
    const near = await openCache(t, { url }, { prefix })
    const far = await Cache.open(`redis://127.0.0.1:${proxy.port}`, {
      prefix,
      drift: 400,
      timeout: 300,
      onError: () => undefined,
      ...options,
    })
    t.after(() => far.close())
    return { proxy, near, far, prefix }
  }

  test('the tracking is cut: what is invalidated meanwhile is not answered for longer than the drift, and all is well after', async (t) => {
    const { proxy, near, far } = await pair(t)
    const state = { value: 1 }
    const get = far.wrap(() => state.value, { key: () => 'k', ttl: '1h' })
    assert.equal(await get(), 1)
    for (let round = 2; round < 8; round++) {
      proxy.cut()
      state.value = round
      await near.invalidate('k')
      await untilCalm(async () => (await get()) === round, 'the new value', 5000)
      await untilCalm(async () => far.stats().tracking, 'it hears again', 5000)
    }
  })

  test('while nothing passes and nothing is said to be cut, nothing old is trusted for longer than the drift', async (t) => {
    const { proxy, near, far } = await pair(t)
    const state = { value: 'old' }
    const get = far.wrap(() => state.value, { key: () => 'k', ttl: '1h' })
    await get()
    await get()
    await proxy.blackhole()
    state.value = 'new'
    await near.invalidate('k')
    await untilCalm(async () => (await get()) === 'new', 'it is loaded without Redis', 5000)
    await proxy.allow()
    proxy.cut()
    await untilCalm(async () => far.stats().redis && far.stats().tracking, 'Redis is back', 10_000)
    assert.equal(await get(), 'new')
  })

  test('Redis is gone: what may be stale is answered, the rest loaded, none waits past its limit, errors have codes', {
    timeout: 60_000,
  }, async (t) => {
    const { proxy, far } = await pair(t)
    let loads = 0
    const load = () => ++loads
    const kept = far.wrap(load, {
      key: (id: number) => `kept:${id}`,
      ttl: 50,
      jitter: 0,
      stale: '1h',
      timeout: '2s',
      tags: ['t'],
    })
    const plain = far.wrap(load, { key: (id: number) => `plain:${id}`, ttl: '1h', timeout: '2s' })
    const failing = far.wrap(
      () => {
        throw new RangeError('the loader is down as well')
      },
      { key: () => 'kept:1', ttl: 50, staleIfError: '1h', timeout: '2s' },
    )
    const first = await kept(1)
    await plain(1)
    const kinds = [() => proxy.block().then(() => proxy.cut()), () => proxy.blackhole()]
    for (const begin of kinds) {
      await begin()
      const end = performance.now() + OUTAGE
      let answers = 0
      while (performance.now() < end) {
        const got = await Promise.all([
          kept(1),
          plain(1),
          plain(1000 + answers),
          failing().catch((error: unknown) => error),
        ])
        assert.equal(typeof got[0], 'number')
        answers++
        await sleep(5)
      }
      // If each had to find out by itself that Redis is silent, there would be no more than one per `timeout`.
      assert.ok(answers > (2 * OUTAGE) / 300, `${answers} answers`)
      await assert.rejects(far.set('k', 1, { ttl: '1m' }), isStoreError)
      await assert.rejects(far.invalidate('k'), isStoreError)
      await assert.rejects(far.invalidateTag('t'), isStoreError)
      await assert.rejects(far.get('nothing'), isStoreError)
      await proxy.allow()
      proxy.cut()
      await untilCalm(async () => far.stats().redis && far.stats().tracking, 'Redis is back', 10_000)
    }
    assert.ok((await kept(1)) >= first)
    await far.set('k', 1, { ttl: '1m' })
  })

  test('a silence that ends in a server without its scripts: an error answer is an answer', async (t) => {
    const { proxy, near, far } = await pair(t)
    await far.set('k', 1, { ttl: '1h' })
    await proxy.blackhole()
    await assert.rejects(far.set('k', 2, { ttl: '1h' }), isStoreError)
    await clientOf(url).script('FLUSH')
    await proxy.allow()
    proxy.cut()
    // Nothing else is called, whose answer would end the pause.
    await untilCalm(() => far.set('k', 3, { ttl: '1h' }).then(() => true), 'it stores again', 10_000)
    assert.equal(await near.get('k'), 3)
  })

  test('a cache that cannot be opened says so', async () => {
    await assert.rejects(Cache.open('redis://127.0.0.1:1', { timeout: 200 }), coded('StoreUnavailable'))
  })
})

const isStoreError = (error: unknown) =>
  isMillpondError(error, 'StoreUnavailable') || isMillpondError(error, 'StoreFailed')
