/** What a cached function promises, wherever its values are kept. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Cache, WrapOptions } from '../../src/cache/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { gated, openCache, PLACES } from './fixture.ts'

interface Thing {
  id: number
  name?: string
}
const key = (id: number) => `thing:${id}`
const base = { key, ttl: '1m' } as const

for (const place of PLACES) {
  describe(`a cached function, ${place.name}`, { skip: place.skip }, () => {
    const onCache = (title: string, check: (cache: Cache, t: TestContext) => Promise<void>) =>
      test(title, async (t) => check(await openCache(t, place), t))

    const counting = (cache: Cache, options: Partial<WrapOptions<number>> = {}) => {
      const inputs: number[] = []
      const get = cache.wrap<number, Thing>(
        (id) => {
          inputs.push(id)
          return { id, name: `made ${inputs.length}` }
        },
        { ...base, ...options },
      )
      return { get, inputs }
    }

    onCache('loads once per key and answers from then on, others included', async (cache) => {
      const { get, inputs } = counting(cache)
      assert.deepEqual(await get(1), { id: 1, name: 'made 1' })
      assert.deepEqual(await get(1), { id: 1, name: 'made 1' })
      assert.deepEqual(await get(2), { id: 2, name: 'made 2' })
      assert.deepEqual(inputs, [1, 2])
      assert.deepEqual(await cache.get('thing:1'), { id: 1, name: 'made 1' })
      assert.equal(await cache.get('thing:3'), undefined)
    })

    onCache('a thousand callers make one call', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, base)
      const answers = Promise.all(Array.from({ length: 1000 }, () => get(7)))
      await until(() => calls.length > 0)
      call(0).resolve({ id: 7 })
      assert.equal((await answers).length, 1000)
      assert.equal(calls.length, 1)
      assert.equal(cache.stats().joined, 999)
    })

    onCache('an error goes to all who wait and is not kept', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, base)
      const both = Promise.allSettled([get(1), get(1)])
      await until(() => calls.length > 0)
      call(0).reject(new RangeError('no'))
      assert.deepEqual(
        (await both).map(({ status }) => status),
        ['rejected', 'rejected'],
      )
      const again = get(1)
      await until(() => calls.length > 1)
      call(1).resolve({ id: 1 })
      assert.deepEqual(await again, { id: 1 })
    })

    onCache('stale while it is made anew', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, { ...base, ttl: 30, jitter: 0, stale: '1m' })
      const first = get(1)
      await until(() => calls.length === 1)
      call(0).resolve({ id: 1, name: 'old' })
      await first
      await sleep(40)
      assert.equal((await get(1)).name, 'old')
      assert.equal((await get(1)).name, 'old')
      await until(() => calls.length === 2)
      call(1).resolve({ id: 1, name: 'new' })
      let name: string | undefined
      await until(() => {
        void get(1).then((thing) => {
          name = thing.name
        })
        return name === 'new'
      })
      assert.ok(cache.stats().stale >= 2)
    })

    onCache(
      'a failing loader never ends a good value: it is answered instead, and the loader left alone for a moment',
      async (cache) => {
        let fails = false
        let calls = 0
        const get = cache.wrap<number, Thing>(
          (id) => {
            calls++
            if (fails) throw new Error('down')
            return { id }
          },
          { ...base, ttl: 20, jitter: 0, staleIfError: '1m' },
        )
        await get(1)
        fails = true
        await sleep(30)
        assert.deepEqual(await get(1), { id: 1 })
        assert.deepEqual(await get(1), { id: 1 })
        assert.equal(calls, 2)
        assert.equal(cache.stats().failed, 1)
        await assert.rejects(get(2), /down/)
      },
    )

    onCache('without staleIfError the error is told once the value is over', async (cache) => {
      let calls = 0
      const get = cache.wrap<number, Thing>(
        (id) => {
          if (calls++ > 0) throw new Error('down')
          return { id }
        },
        { ...base, ttl: 20, jitter: 0 },
      )
      await get(1)
      await sleep(30)
      await assert.rejects(get(1), /down/)
    })

    onCache('a loader that is too slow is aborted, and an older value answered if there is one', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, { ...base, ttl: 20, jitter: 0, staleIfError: '1m', timeout: 1500 })
      await assert.rejects(get(1), coded('TimedOut'))
      assert.ok(call(0).signal.aborted)
      const second = get(1)
      await until(() => calls.length === 2)
      call(1).resolve({ id: 1, name: 'kept' })
      await second
      await sleep(30)
      assert.equal((await get(1)).name, 'kept')
      assert.equal(calls.length, 3)
    })

    onCache('null and undefined are kept for `negative` alone', async (cache) => {
      for (const nothing of [null, undefined]) {
        let calls = 0
        const load = () => {
          calls++
          return nothing
        }
        const not = cache.wrap<string, null | undefined>(load, { key: (text) => `not:${nothing}:${text}`, ttl: '1m' })
        assert.equal(await not('a'), nothing)
        assert.equal(await not('a'), nothing)
        assert.equal(calls, 2)
        const options = { key: (text: string) => `yes:${nothing}:${text}`, ttl: '1m', negative: '1m' } as const
        const kept = cache.wrap<string, null | undefined>(load, options)
        assert.equal(await kept('a'), nothing)
        assert.equal(await kept('a'), nothing)
        assert.equal(calls, 3)
      }
    })

    onCache('a value that is gone by the loader is gone', async (cache) => {
      let loads = 0
      const get = cache.wrap<number, Thing | null>(() => (loads++ === 0 ? { id: 1 } : null), {
        ...base,
        ttl: 20,
        jitter: 0,
        staleIfError: '1m',
      })
      assert.deepEqual(await get(1), { id: 1 })
      await until(async () => (await get(1)) === null)
      const before = loads
      assert.equal(await get(1), null)
      assert.equal(loads, before + 1)
    })

    onCache(
      'invalidate ends a value, and a load under way is begun anew: nobody gets what it would have brought',
      async (cache) => {
        const { load, calls, call } = gated<number, Thing>()
        const get = cache.wrap(load, base)
        const first = get(1)
        await until(() => calls.length === 1)
        await cache.invalidate(key(1))
        await until(() => calls.length === 2)
        assert.ok(call(0).signal.aborted)
        call(0).resolve({ id: 1, name: 'of before' })
        call(1).resolve({ id: 1, name: 'of after' })
        assert.equal((await first).name, 'of after')
        assert.equal((await get(1)).name, 'of after')
        assert.equal(cache.stats().cancelled, 1)
        assert.equal(await cache.delete(key(1)), true)
        assert.equal(await cache.delete(key(1)), false)
        const again = get(1)
        await until(() => calls.length === 3)
        call(2).resolve({ id: 1, name: 'last' })
        assert.equal((await again).name, 'last')
      },
    )

    onCache('a key that is invalidated all the time is answered all the same, and not kept', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, base)
      const first = get(1)
      for (let turn = 1; turn <= 5; turn++) {
        const at = Math.min(turn, 5)
        await until(() => calls.length === at)
        await cache.invalidate(key(1))
      }
      call(4).resolve({ id: 1, name: 'at last' })
      assert.equal((await first).name, 'at last')
      const second = get(1)
      await until(() => calls.length === 6)
      call(5).resolve({ id: 1, name: 'anew' })
      assert.equal((await second).name, 'anew')
    })

    onCache('a tag ends all that has it and nothing else, also what is being loaded', async (cache) => {
      const { get, inputs } = counting(cache, { tags: (id) => [`odd:${id % 2}`, 'things'] })
      for (const id of [1, 2, 3]) await get(id)
      await cache.invalidateTag('odd:1')
      for (const id of [1, 2, 3]) await get(id)
      assert.deepEqual(inputs, [1, 2, 3, 1, 3])
      await cache.invalidateTag('things')
      await cache.invalidateTag('unheard of')
      for (const id of [1, 2, 3]) await get(id)
      assert.deepEqual(inputs, [1, 2, 3, 1, 3, 1, 2, 3])

      const { load, calls, call } = gated<number, Thing>()
      const tagged = cache.wrap(load, { key: (id) => `other:${id}`, ttl: '1m', tags: ['things'] })
      const first = tagged(1)
      await until(() => calls.length === 1)
      await cache.invalidateTag('things')
      await until(() => calls.length === 2)
      call(1).resolve({ id: 1, name: 'of after' })
      assert.equal((await first).name, 'of after')
    })

    test('what has a tag is kept for as long as what has none, however long the process is up', async (t) => {
      const cache = await openCache(t, place, { drift: 100 })
      const { get, inputs } = counting(cache, { tags: ['things'] })
      await until(() => performance.now() > 200)
      for (let turn = 0; turn < 5; turn++) assert.equal((await get(1)).name, 'made 1')
      assert.deepEqual(inputs, [1])
      await cache.set('set', 'kept', { ttl: '1m', tags: ['others'] })
      assert.equal(await cache.get('set'), 'kept')
      await cache.invalidateTag('things')
      await cache.invalidateTag('others')
      assert.equal((await get(1)).name, 'made 2')
      assert.equal(await cache.get('set'), undefined)
    })

    onCache('set is there for everyone, and a load under way finds it', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, base)
      const first = get(1)
      await until(() => calls.length === 1)
      await cache.set(key(1), { id: 1, name: 'set' }, { ttl: '1m', tags: ['a'] })
      assert.equal((await first).name, 'set')
      assert.equal((await get(1)).name, 'set')
      assert.deepEqual(await cache.get(key(1)), { id: 1, name: 'set' })
      call(0).resolve({ id: 1, name: 'of before' })
      assert.equal(calls.length, 1)
      await cache.invalidateTag('a')
      assert.equal(await cache.get(key(1)), undefined)
    })

    onCache('a caller may leave; the load is aborted when the last has left', async (cache) => {
      const { load, calls, call } = gated<number, Thing>()
      const get = cache.wrap(load, base)
      const [one, two] = [new AbortController(), new AbortController()]
      const both = Promise.allSettled([get(1, { signal: one.signal }), get(1, { signal: two.signal })])
      await until(() => calls.length === 1)
      one.abort(new Error('left'))
      assert.ok(!call(0).signal.aborted)
      two.abort(new Error('left'))
      await both
      await until(() => call(0).signal.aborted)
      await assert.rejects(get(1, { signal: AbortSignal.abort(new Error('gone before')) }), /gone before/)
    })

    onCache('every kind of value comes back as it was', async (cache) => {
      const values: unknown[] = [
        'text',
        '',
        0,
        -1.5,
        2 ** 40,
        true,
        false,
        12345678901234567890n,
        [],
        {},
        [1, [2, [3]]],
        { a: { b: { c: [{ d: 1 }, { d: 2 }] } } },
        new Date(0),
        { bytes: Uint8Array.of(1, 2, 3), list: [{ some: Buffer.of(4) }] },
        Buffer.from('text'),
        Uint8Array.of(0, 255),
        { undefined: undefined, null: null },
        'x'.repeat(100_000),
        Array.from({ length: 2000 }, (_, i) => ({ i, even: i % 2 === 0 })),
        Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`name ${i}`, i])),
        { 'ä 𝄞': '𝄞' },
      ]
      for (const [index, value] of values.entries()) {
        await cache.set(`value ${index} }{%`, value, { ttl: '1m' })
        const back = await cache.get(`value ${index} }{%`)
        assert.deepEqual(plain(back), plain(value), `value ${index}`)
        // What made it may have been in Buffers: nobody is to see from which layer it comes.
        assert.doesNotMatch(inspect(back, { depth: 9 }), /<Buffer/)
      }
    })

    onCache('what cannot be kept is refused', async (cache) => {
      class Classy {}
      const circle: { self?: unknown } = {}
      circle.self = circle
      for (const value of [
        () => 1,
        Symbol('s'),
        new Map(),
        new Classy(),
        { a: new Set() },
        circle,
        JSON.parse('{"__proto__":1}'),
        2n ** 64n,
        new Date(Number.NaN),
      ]) {
        await assert.rejects(cache.set('k', value, { ttl: '1m' }), coded('PayloadNotEncodable'))
        const get = cache.wrap(() => value, { key: () => 'k', ttl: '1m' })
        await assert.rejects(get(), coded('PayloadNotEncodable'))
      }
    })

    onCache('half of a surrogate pair is refused, with the path to it; in a key, too', async (cache) => {
      const half = 'caf\ud83d'
      for (const [value, path] of [
        [half, ''],
        [{ a: [1, { b: half }] }, 'a.1.b'],
        [{ a: { [half]: 1 } }, 'a.caf\ufffd'],
        [[new Uint8Array(1), half], '1'],
      ] as const) {
        const refused = (error: unknown) => {
          assert.ok(isMillpondError(error, 'PayloadNotEncodable'), String(error))
          assert.equal(error.issues?.[0]?.path, path)
          return true
        }
        await assert.rejects(cache.set('k', value, { ttl: '1m' }), refused)
        await assert.rejects(cache.wrap(() => value, { key: () => 'k', ttl: '1m' })(), refused)
      }
      await assert.rejects(cache.set(half, 1, { ttl: '1m' }), coded('InvalidName'))
      await cache.set('k', { pair: '🌊', looks: '\\ud83d' }, { ttl: '1m' })
      assert.deepEqual(await cache.get('k'), { pair: '🌊', looks: '\\ud83d' })
    })

    onCache('a closed cache says so', async (cache) => {
      const { get } = counting(cache)
      await cache.close()
      await cache.close()
      await assert.rejects(get(1), coded('Closed'))
      await assert.rejects(cache.get('k'), coded('Closed'))
      await assert.rejects(cache.invalidate('k'), coded('Closed'))
      await assert.rejects(cache.invalidateTag('k'), coded('Closed'))
      assert.throws(() => cache.wrap(() => 1, { key: () => 'k', ttl: 1 }), coded('Closed'))
    })
  })
}

/** Buffers as what they are, for the comparison. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value]
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map(plain)
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plain(item)]))
}
