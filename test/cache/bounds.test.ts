/** What a cache takes in memory, and what it leaves behind. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Cache, type CacheOptions } from '../../src/cache/index.ts'
import { Tags } from '../../src/cache/memory/tags.ts'
import { sizeOfValue } from '../../src/cache/memory/value-size.ts'
import { CacheKeys } from '../../src/cache/redis/keys.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { coded } from '../unit/suite.ts'
import { freshPrefix, onServers, openCache, PLACES } from './fixture.ts'

for (const place of PLACES) {
  describe(`bounds, ${place.name}`, { skip: place.skip }, () => {
    test('memory never weighs more than it may; the longest unused goes first', async (t) => {
      const cache = await openCache(t, place, { memory: '1mb' })
      const get = cache.wrap((id: number) => ({ id, text: 'x'.repeat(10_000) }), {
        key: (id) => `k${id}`,
        ttl: '1h',
        tags: (id) => [`t${id}`, 'all'],
      })
      for (let id = 0; id < 300; id++) {
        await get(id)
        await get(0)
        if (id % 10 === 0) await get.rendered({}, id)
        assert.ok(cache.stats().bytes <= 1024 * 1024)
      }
      assert.ok(cache.stats().entries > 10 && cache.stats().entries < 300)
      const { loads } = cache.stats()
      await get(0)
      assert.equal(cache.stats().loads, loads)
      const large = cache.wrap(() => 'y'.repeat(2_000_000), { key: () => 'large', ttl: '1h' })
      assert.equal((await large()).length, 2_000_000)
      assert.ok(cache.stats().bytes <= 1024 * 1024)
    })

    test('with no memory at all everything still works', async (t) => {
      const cache = await openCache(t, place, { memory: 0 })
      let calls = 0
      const get = cache.wrap(() => ++calls, { key: () => 'k', ttl: '1h' })
      assert.equal(await get(), 1)
      assert.equal(await get(), place.name === 'memory' ? 2 : 1)
      assert.equal(cache.stats().entries, 0)
    })

    test('listeners on a signal are removed', async (t) => {
      const cache = await openCache(t, place)
      const { signal } = new AbortController()
      let added = 0
      const { addEventListener, removeEventListener } = signal
      signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
        added++
        return addEventListener.apply(signal, args)
      }
      signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
        added--
        return removeEventListener.apply(signal, args)
      }
      const get = cache.wrap((id: number) => id, { key: (id) => `k${id}`, ttl: '1h' })
      for (let id = 0; id < 20; id++) await get(id % 10, { signal })
      assert.equal(added, 0)
    })
  })
}

test('tags are forgotten with their last value', () => {
  const tags = new Tags()
  const all = Array.from({ length: 100 }, (_, i) => tags.take(`t${i % 10}`))
  assert.equal(tags.size, 10)
  for (const tag of all) tags.giveBack(tag)
  assert.equal(tags.size, 0)
})

test('weights are near what V8 takes', () => {
  setFlagsFromString('--expose-gc')
  const gc: () => void = runInNewContext('gc')
  gc()
  const before = process.memoryUsage().heapUsed
  const value = Array.from({ length: 100_000 }, (_, index) => ({ index, at: 1e12 + index, nested: { isEven: true } }))
  gc()
  const taken = process.memoryUsage().heapUsed - before
  const ratio = sizeOfValue(value) / taken
  assert.ok(ratio > 0.7 && ratio < 2, String(ratio))
})

const isRefusal = (error: unknown) => isMillpondError(error, 'InvalidOption') || isMillpondError(error, 'InvalidName')

test('options are checked, unknown ones refused', async () => {
  const refused: [string, unknown][] = [
    ['prefix', 'a:b'],
    ['prefix', ''],
    ['prefix', 1],
    ['memory', -1],
    ['memory', '1tb'],
    ['memory', 1.5],
    ['drift', 10],
    ['drift', 'x'],
    ['timeout', 0],
    ['maxValue', '8gb'],
    ['cluster', 'yes'],
    ['client', {}],
    ['onError', 1],
    ['ttl', '1m'],
  ]
  for (const [name, given] of refused) {
    const options: CacheOptions = { [name]: given }
    await assert.rejects(Cache.open('redis://127.0.0.1:1', options), coded('InvalidOption'), `${name} ${String(given)}`)
  }
  for (const query of ['prefix=a{b}', 'timeout=soon', 'wait=1', 'partitions=2', 'memory=1mb'])
    await assert.rejects(Cache.open(`redis://127.0.0.1:1?${query}`), coded('InvalidOption'), query)
  await assert.rejects(Cache.open('postgres://x'), coded('UnknownScheme'))
  await using cache = await Cache.open('memory:')
  const good = { key: () => 'k', ttl: '1m' } as const
  const bad: [string, unknown][] = [
    ['key', 'k'],
    ['key', undefined],
    ['ttl', undefined],
    ['ttl', 0],
    ['ttl', '25d'],
    ['stale', -1],
    ['staleIfError', 'x'],
    ['negative', '1x'],
    ['jitter', 2],
    ['tags', 'a'],
    ['tags', [1]],
    ['tags', Array(33).fill('x')],
    ['timeout', 1],
    ['unknown', 1],
  ]
  for (const [name, given] of bad) {
    const options = { ...good, [name]: given }
    assert.throws(() => cache.wrap(() => 1, options), isRefusal, name)
  }
  assert.throws(() => cache.wrap(1 as never, good), coded('InvalidOption'))
  await assert.rejects(cache.set('k', 1, { ttl: '1m', ...{ negative: 1 } }), coded('InvalidOption'))
  for (const key of ['', 'x'.repeat(1025), '\ud800', 1, undefined, null]) {
    const given: never = key as never
    await assert.rejects(cache.get(given), coded('InvalidName'))
    await assert.rejects(cache.wrap(() => 1, { ...good, key: () => given })(), coded('InvalidName'))
    await assert.rejects(cache.invalidateTag(given), coded('InvalidName'))
  }
})

test('names in Redis lead back to their keys', () => {
  const names = new CacheKeys('p')
  for (const key of ['a', 'a}b{c', '%', '%7D', '}}', '{}', 'ä 𝄞', 'p:v:{a}']) {
    assert.deepEqual(names.parse(names.value(key)), { key })
    const tag = (name: string) => /\{([^}]+)\}/.exec(name)?.[1]
    assert.equal(tag(names.value(key)), tag(names.lock(key)), 'one slot')
    assert.equal(tag(names.value(key)), tag(names.chunks(key)), 'one slot')
  }
  assert.deepEqual(names.parse(`${names.tags}t`), { tag: 't' })
  assert.equal(names.parse('q:v:{a}'), undefined)
})

for (const place of onServers) {
  test(`a prefix in the URL, ${place.name}`, { skip: place.skip }, async (t) => {
    const prefix = freshPrefix()
    const cache = await openCache(t, place, { prefix })
    await cache.set('k', 'shared', { ttl: '1m' })
    const [address, query] = place.url.split('?')
    await using other = await Cache.open(`${address}?${[query, `prefix=${prefix}`].filter(Boolean).join('&')}`)
    assert.equal(await other.get('k'), 'shared')
    await using elsewhere = await Cache.open(place.url)
    assert.equal(await elsewhere.get('k'), undefined)
  })
}
