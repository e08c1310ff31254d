/** Values of a cache, where they cannot be stored, read or loaded: nothing but the loader's own error shows them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cache } from '../../src/cache/index.ts'
import { openCache, PLACES } from '../cache/fixture.ts'
import { started } from '../servers/fixtures.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { assertClean, CANARY, fails, written } from './canary.ts'

/** What a caller without types may pass. */
function anything<T>(value: unknown): T {
  // The one cast of these tests: what is passed is wrong on purpose.
  return value as T
}

const VALUE = { to: CANARY, bytes: Buffer.from(CANARY) }
const HOUR = { ttl: '1h' } as const

/** Without `onError`: what goes wrong in the background is a warning of the process. */
async function open(t: TestContext, url: string): Promise<Cache> {
  const cache = await Cache.open(url, { timeout: 500, drift: 400, maxValue: 1000 })
  t.after(() => cache.close())
  return cache
}

for (const place of PLACES) {
  test(`calls that are refused: ${place.name}`, { skip: place.skip }, async (t) => {
    const cache = await openCache(t, place, { maxValue: 1000 })
    const throwing = {
      toJSON() {
        throw new Error(CANARY)
      },
      get to() {
        throw new Error(CANARY)
      },
    }
    const wrong: [string, () => unknown][] = [
      ['set without options', () => cache.set('k', VALUE, anything(undefined))],
      ['set with a value as options', () => cache.set('k', 1, anything(CANARY))],
      ['set with an unknown option', () => cache.set('k', 1, anything({ ...HOUR, [`${CANARY}@`]: 1 }))],
      ['set with a value as its ttl', () => cache.set('k', 1, anything({ ttl: CANARY }))],
      ['set with values as tags', () => cache.set('k', 1, anything({ ...HOUR, tags: [VALUE] }))],
      ['set with a value as key', () => cache.set(anything(VALUE), 1, HOUR)],
      ['get', () => cache.get(anything([CANARY]))],
      ['wrap', () => cache.wrap(anything<() => 1>(CANARY), { ...HOUR, key: () => 'k' })],
      [
        'a key that is a value',
        () => cache.wrap((_: unknown) => 1, { ...HOUR, key: (value) => anything(value) })(VALUE),
      ],
    ]
    if (place.name !== 'memory') {
      wrong.push(
        ['set of too much', () => cache.set('k', CANARY.repeat(1000), HOUR)],
        ['set of too many bytes', () => cache.set('k', Buffer.from(CANARY.repeat(1000)), HOUR)],
        ['set of what throws', () => cache.set('k', throwing, HOUR)],
      )
    }
    for (const [title, call] of wrong) await fails(title, call)
  })
}

const skip = { skip: missingReason('redis') }

test('what is in Redis and cannot be read', skip, async (t) => {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return
  const cache = await open(t, redis.url)
  // Spoilt values of the cache's own are loaded anew, and told of as a warning.
  const { lines } = await written(async () => {
    const get = cache.wrap(() => VALUE, { ...HOUR, key: (key: string) => key })
    await get('k')
    for (const spoilt of [CANARY, `\u0001${CANARY}`]) {
      await redis.command('set', 'cache:v:{k}', spoilt)
      await redis.command('set', 'cache:s', CANARY)
      await using other = await Cache.open(redis.url)
      const again = other.wrap(() => VALUE, { ...HOUR, key: (key: string) => key })
      await again('k')
    }
  })
  for (const line of lines) assertClean(line, 'stderr')
})

async function onRedis(t: TestContext, args: readonly string[], trouble: (redis: RedisServer) => Promise<unknown>) {
  const redis = await started(t, () => startRedis({ args }))
  if (redis === undefined) return
  const cache = await open(t, redis.url)
  await trouble(redis)
  await fails('set', () => cache.set('k', VALUE, HOUR))
  await fails('set of a text', () => cache.set('k', CANARY, HOUR))
  await fails('set with tags', () => cache.set('k', VALUE, { ...HOUR, tags: ['t'] }))
  await fails('invalidate a tag', () => cache.invalidateTag('t'))
  const { lines } = await written(async () => {
    const get = cache.wrap(() => VALUE, { ...HOUR, tags: ['t'], key: (key: string) => key })
    // Bytes come back as plain ones.
    assert.deepEqual(await get('w'), { ...VALUE, bytes: new Uint8Array(VALUE.bytes) })
  })
  for (const line of lines) assertClean(line, 'stderr')
}

test('Redis is full', skip, (t) => onRedis(t, [], (redis) => redis.command('config', 'set', 'maxmemory', '1')))

test('Redis is gone', skip, (t) => onRedis(t, [], (redis) => redis.stop()))

test('Redis refuses scripts and repeats what it was given', skip, (t) =>
  onRedis(t, ['--rename-command', 'EVALSHA', 'nope1', '--rename-command', 'EVAL', 'nope2'], async (redis) => {
    await redis.command('config', 'set', 'maxmemory', '1')
  }),
)

test('a loader that throws a value: its caller gets the error, a warning does not show it', async (t) => {
  const cache = await open(t, 'memory:')
  const { lines } = await written(async () => {
    let loads = 0
    const get = cache.wrap(
      () => {
        if (loads++ > 0) throw new Error(`cannot load ${CANARY}`)
        return 1
      },
      { key: () => 'k', ttl: 1, jitter: 0, stale: '1h', staleIfError: '1h' },
    )
    assert.equal(await get(), 1)
    while (loads < 2) {
      await sleep(2)
      await get()
    }
    // The warning comes once the load in the background has failed.
    await sleep(0)
  })
  assert.ok(
    lines.some((line) => /the loader failed: Error at .*cache\.test\.ts/.test(line)),
    lines.join('\n'),
  )
  for (const line of lines) assertClean(line, 'stderr')

  const broken = await Cache.open('memory:', {
    onError: () => {
      throw new Error(CANARY)
    },
  })
  const { lines: told } = await written(async () => {
    let loads = 0
    const get = broken.wrap(() => (loads++ > 0 ? Promise.reject(CANARY) : 1), {
      key: () => 'k',
      ttl: 1,
      jitter: 0,
      stale: '1h',
    })
    await get()
    while (loads < 2) {
      await sleep(2)
      await get()
    }
    await sleep(0)
  })
  assert.ok(told.length > 0)
  for (const line of told) assertClean(line, 'stderr')
  await broken.close()
})
