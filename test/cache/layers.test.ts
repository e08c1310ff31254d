/** What is known of a key, and how sure that is; nothing of what was refused stays behind. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Layers } from '../../src/cache/layers.ts'
import { type Changes, NO_OTHERS } from '../../src/cache/redis/change-tracker.ts'
import { Codec } from '../../src/cache/redis/codec.ts'
import { RedisLayer } from '../../src/cache/redis/redis-layer.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { freshPrefix, gated, onServers, openCache, quiet } from './fixture.ts'

const HOUR = 3_600_000
const lives = { fresh: HOUR, stale: 0, error: 0 }

function layersOn(redis: RedisLayer | undefined, changes: Changes): Layers {
  return new Layers(redis, changes, new Codec(undefined, 1e6, quiet), { memory: 1e6, drift: 1000, onError: quiet })
}

test('what was missed while a value was loaded may concern it', () => {
  const changes = { on: true, epoch: 1, aliveAt: Number.POSITIVE_INFINITY }
  const layers = layersOn(undefined, changes)
  const standing = () => {
    const begun = layers.begin()
    return (missed: number) => {
      changes.epoch += missed
      const entry = layers.keep(layers.track('k'), 'v', lives, {
        version: '',
        encoded: undefined,
        begun,
        wanted: 'value',
      })
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
  const layers = layersOn(undefined, NO_OTHERS)
  const load = layers.track('k', ['t'])
  load.markers = layers.knownMarkers(load)
  const keep = (value: unknown) =>
    layers.keep(load, value, lives, { version: '', encoded: undefined, begun: layers.begin(), wanted: 'value' })
  assert.throws(() => keep(() => 1), coded('PayloadNotEncodable'))
  keep('v')
  layers.untrack(load)
  assert.equal(layers.tags.size, 1)
  layers.forget('k')
  assert.equal(layers.tags.size, 0)
})

for (const place of onServers) {
  test(`tags of a value whose markers cannot be had are forgotten, ${place.name}`, { skip: place.skip }, async (t) => {
    const prefix = freshPrefix()
    const cache = await openCache(t, place, { prefix })
    await cache.set('k', 'v', { ttl: '1m', tags: ['t', 'u'] })
    const redis = await RedisLayer.open(place.url, { prefix })
    t.after(() => redis.close())
    const layers = layersOn(redis, NO_OTHERS)
    const { markers } = redis
    redis.markers = () => Promise.reject(new MillpondError('StoreUnavailable', 'cut off between two calls'))
    await assert.rejects(layers.look(redis, layers.track('k'), 'value'), coded('StoreUnavailable'))
    assert.equal(layers.tags.size, 0)
    redis.markers = markers
    const { entry } = await layers.look(redis, layers.track('k'), 'value')
    assert.ok(entry)
    assert.equal(layers.tags.size, 2)
    layers.forget('k')
    assert.equal(layers.tags.size, 0)
  })
}
