/** What is known of a key, and how sure that is; nothing of what was refused stays behind. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Codec } from '../../src/cache/codec.ts'
import { Flying } from '../../src/cache/flying.ts'
import { Layers } from '../../src/cache/layers.ts'
import { RedisSide } from '../../src/cache/redis.ts'
import { ALONE, type Watch } from '../../src/cache/watch.ts'
import { MillpondError } from '../../src/errors.ts'
import { coded, until } from '../unit/suite.ts'
import { freshPrefix, gated, onServers, openCache, quiet } from './fixture.ts'

const HOUR = 3_600_000
const lives = { fresh: HOUR, stale: 0, error: 0 }

function layersOn(redis: RedisSide | undefined, watch: Watch): Layers {
  return new Layers(redis, watch, new Codec(undefined, 1e6, quiet), { memory: 1e6, drift: 1000, onTrouble: quiet })
}

const flyingOf = (...tags: string[]) => new Flying('k', tags, new AbortController().signal, quiet)

test('what was missed while a value was loaded may concern it', () => {
  const watch = { epoch: 1, aliveAt: Number.POSITIVE_INFINITY }
  const layers = layersOn(undefined, watch)
  const standing = () => {
    const begun = layers.begin()
    return (missed: number) => {
      watch.epoch += missed
      const entry = layers.keep(flyingOf(), 'v', lives, { version: '', encoded: undefined, begun, wanted: 'value' })
      return layers.standing(entry, performance.now() + 5000)
    }
  }
  assert.equal(standing()(0), 'fresh')
  assert.equal(standing()(1), 'unsure')
})

test('a load that is begun anew does not find what was set and ended at once', async (t) => {
  const cache = await openCache(t, { url: 'memory:' })
  const { load, calls, call } = gated<void, string>()
  const get = cache.wrap(load, { key: () => 'k', ttl: '1m' })
  const first = get()
  await until(() => calls.length === 1)
  await Promise.all([cache.set('k', 'set', { ttl: '1m', tags: ['t'] }), cache.invalidateTag('t')])
  await until(() => calls.length === 2)
  call(1).resolve('of after')
  assert.equal(await first, 'of after')
  assert.equal(await get(), 'of after')
})

test('tags of a value that cannot be kept are forgotten', () => {
  const layers = layersOn(undefined, ALONE)
  const flying = flyingOf('t')
  const held = layers.hold(flying.tags)
  flying.markers = layers.assumed(held)
  const keep = (value: unknown) =>
    layers.keep(flying, value, lives, { version: '', encoded: undefined, begun: layers.begin(), wanted: 'value' })
  assert.throws(() => keep(() => 1), coded('PayloadNotEncodable'))
  keep('v')
  layers.letGo(held)
  assert.equal(layers.tags.size, 1)
  layers.forget('k')
  assert.equal(layers.tags.size, 0)
})

for (const place of onServers) {
  test(`tags of a value whose markers cannot be had are forgotten, ${place.name}`, { skip: place.skip }, async (t) => {
    const prefix = freshPrefix()
    const cache = await openCache(t, place, { prefix })
    await cache.set('k', 'v', { ttl: '1m', tags: ['t', 'u'] })
    const redis = await RedisSide.open(place.url, { prefix })
    t.after(() => redis.close())
    const layers = layersOn(redis, ALONE)
    const { markers } = redis
    redis.markers = () => Promise.reject(new MillpondError('StoreUnavailable', 'cut off between two calls'))
    await assert.rejects(layers.look(redis, flyingOf(), 'value'), coded('StoreUnavailable'))
    assert.equal(layers.tags.size, 0)
    redis.markers = markers
    const { entry } = await layers.look(redis, flyingOf(), 'value')
    assert.ok(entry)
    assert.equal(layers.tags.size, 2)
    layers.forget('k')
    assert.equal(layers.tags.size, 0)
  })
}
