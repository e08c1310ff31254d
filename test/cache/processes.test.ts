/** Several processes, or several caches as if they were: one flight among all, invalidations that reach everyone, holders that die. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CacheKeys } from '../../src/cache/redis/keys.ts'
import { untilCalm } from '../support/until.ts'
import { clientOf, freshPrefix, gated, onServers, openCache } from './fixture.ts'

const role = fileURLToPath(new URL('roles/loader.ts', import.meta.url))
const key = (id: number) => `thing:${id}`
const base = { key, ttl: '1m' } as const

/** A process whose loader answers when it is told to. */
async function process(t: TestContext, url: string, prefix: string) {
  const child: ChildProcess = fork(role, [url, prefix], { execArgv: ['--disable-warning=MillpondWarning'] })
  t.after(() => child.kill('SIGKILL'))
  const heard: string[] = []
  child.on('message', (message) => heard.push(String(message)))
  const hears = (text: string, count = 1) =>
    untilCalm(async () => heard.filter((each) => each === text).length >= count, `the process says ${text}`, 15_000)
  await hears('ready')
  return { child, heard, hears, say: (text: string) => child.send(text) }
}

for (const place of onServers) {
  const { url } = place
  describe(`several processes, ${place.name}`, { skip: place.skip }, () => {
    test('one flight among four caches, and all get its value', async (t) => {
      const prefix = freshPrefix()
      const { load, calls, call } = gated<number, { id: number }>()
      const caches = await Promise.all([1, 2, 3, 4].map(() => openCache(t, place, { prefix })))
      const answers = Promise.all(caches.map((cache) => cache.wrap(load, base)(1)))
      await untilCalm(async () => caches.filter((cache) => cache.stats().waited > 0).length === 3, 'the others wait')
      assert.equal(calls.length, 1)
      call(0).resolve({ id: 1 })
      assert.deepEqual(await answers, Array(4).fill({ id: 1 }))
      assert.equal(calls.length, 1)
    })

    test('a load that takes longer than its lock lives keeps it, by renewing', async (t) => {
      const prefix = freshPrefix()
      const { load, calls, call } = gated<number, { id: number }>()
      const [one, two] = [await openCache(t, place, { prefix }), await openCache(t, place, { prefix })]
      const short = { ...base, timeout: 4000 } // so the lock lives for 2 s
      const first = one.wrap(load, short)(1)
      await untilCalm(async () => calls.length === 1, 'it loads')
      const second = two.wrap(load, short)(1)
      await sleep(2800)
      assert.equal(calls.length, 1)
      call(0).resolve({ id: 1 })
      assert.deepEqual(await Promise.all([first, second]), [{ id: 1 }, { id: 1 }])
      assert.equal(calls.length, 1)
    })

    test('an error frees the lock: another one loads', async (t) => {
      const prefix = freshPrefix()
      const { load, calls, call } = gated<number, { id: number }>()
      const [one, two] = [await openCache(t, place, { prefix }), await openCache(t, place, { prefix })]
      const both = Promise.allSettled([one.wrap(load, base)(1), two.wrap(load, base)(1)])
      await untilCalm(async () => one.stats().waited + two.stats().waited > 0, 'the other waits')
      call(0).reject(new Error('no'))
      await untilCalm(async () => calls.length === 2, 'the other loads')
      call(1).resolve({ id: 1 })
      assert.deepEqual((await both).map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    })

    test('a lock that never expires is nobody’s: it ends after the time of one', { timeout: 30_000 }, async (t) => {
      const prefix = freshPrefix()
      const cache = await openCache(t, place, { prefix })
      await clientOf(url).set(new CacheKeys(prefix).lock('k'), 'somebody')
      const get = cache.wrap(() => 'mine', { key: () => 'k', ttl: '1m', timeout: '6s' })
      assert.equal(await get(), 'mine')
    })

    test('the holder is killed: those who wait take over within the time limit', { timeout: 30_000 }, async (t) => {
      const prefix = freshPrefix()
      const holder = await process(t, url, prefix)
      holder.say('get')
      await holder.hears('loading')
      const cache = await openCache(t, place, { prefix })
      const get = cache.wrap(() => 'mine', { key: () => 'k', ttl: '1m', timeout: '10s' })
      const waiting = Promise.all(Array.from({ length: 20 }, () => get()))
      await untilCalm(async () => cache.stats().waited > 0, 'they wait')
      holder.child.kill('SIGKILL')
      await once(holder.child, 'exit')
      assert.deepEqual(await waiting, Array(20).fill('mine'))
      assert.equal(cache.stats().loads, 1)
    })

    test('a holder that was stopped for longer than its lease stores nothing over a newer value', {
      timeout: 30_000,
    }, async (t) => {
      const prefix = freshPrefix()
      const holder = await process(t, url, prefix)
      holder.say('get')
      await holder.hears('loading')
      holder.child.kill('SIGSTOP')
      const cache = await openCache(t, place, { prefix })
      const get = cache.wrap(() => 'newer', { key: () => 'k', ttl: '1m' })
      assert.equal(await get(), 'newer')
      holder.child.kill('SIGCONT')
      holder.say('answer')
      await holder.hears('got newer')
      assert.equal(await (await openCache(t, place, { prefix })).get('k'), 'newer')
    })

    test('an invalidation ends the load of another process: what it would bring is never stored', {
      timeout: 30_000,
    }, async (t) => {
      const prefix = freshPrefix()
      const other = await process(t, url, prefix)
      other.say('get')
      await other.hears('loading')
      const cache = await openCache(t, place, { prefix })
      await cache.invalidate('k')
      await other.hears('aborted')
      await other.hears('loading', 2)
      assert.equal(await cache.get('k'), undefined)
      other.say('answer')
      await other.hears('got loaded 2')
      assert.equal(await cache.get('k'), 'loaded 2')
    })

    test('and with tracking and notifications unheard, the lock alone keeps it out', async (t) => {
      const prefix = freshPrefix()
      const { load, calls, call } = gated<number, string>()
      const cache = await openCache(t, place, { prefix })
      const get = cache.wrap(load, base)
      const first = get(1)
      await untilCalm(async () => calls.length === 1, 'it loads')
      // As an invalidation would do it whose message was lost: what is published is only a hint.
      await clientOf(url).unlink(`${prefix}:l:{thing:1}`)
      call(0).resolve('of before')
      await untilCalm(async () => calls.length === 2, 'it loads anew')
      assert.equal(await clientOf(url).exists(`${prefix}:v:{thing:1}`), 0)
      call(1).resolve('of after')
      assert.equal(await first, 'of after')
    })

    test('what another process invalidates or sets is known here soon, by key and by tag', async (t) => {
      const prefix = freshPrefix()
      const options = { prefix, drift: '1h' } as const // so that nothing but the tracking can tell
      const [one, two] = [await openCache(t, place, options), await openCache(t, place, options)]
      assert.ok(one.stats().tracking && two.stats().tracking)
      let made = 0
      const wrapped = { key: () => 'k', ttl: '1h', tags: ['t'] } as const
      const get = one.wrap(() => ++made, wrapped)
      assert.equal(await get(), 1)
      // The first access after our own write finds out that it is our own.
      assert.equal(await get(), 1)
      await two.invalidate('k')
      await untilCalm(async () => (await get()) === 2, 'it is made anew')
      await two.invalidateTag('t')
      await untilCalm(async () => (await get()) === 3, 'it is made anew')
      await two.set('k', 100, { ttl: '1h' })
      await untilCalm(async () => (await get()) === 100, 'it is the one that was set')
      // As any other program would do it.
      await clientOf(url).unlink(`${prefix}:v:{k}`)
      await untilCalm(async () => (await get()) === 4, 'it is made anew')
    })

    test('hits of an unchanged value ask Redis for nothing', async (t) => {
      const cache = await openCache(t, place, { drift: '1h' })
      const get = cache.wrap(() => 'v', { key: () => 'k', ttl: '1h', tags: ['t'] })
      await get()
      await untilCalm(async () => {
        const { hits } = cache.stats()
        await get()
        return cache.stats().hits > hits
      }, 'it is settled')
      const { found } = cache.stats()
      for (let i = 0; i < 1000; i++) await get()
      assert.equal(cache.stats().found, found)
    })
  })
}
