/** Redis itself is killed and stays away for ten seconds, while a process goes on using the cache. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Cache } from '../../src/cache/index.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { untilCalm } from '../support/until.ts'
import type { Tallies } from './roles/caller.ts'

const OUTAGE = 10_000
/** Those that Redis alone can carry out. */
const DIRECT = ['get', 'set', 'invalidate', 'invalidateTag'] as const
const role = fileURLToPath(new URL('roles/caller.ts', import.meta.url))

test('Redis is gone for 10 s: what is stale is answered, the rest loaded, errors have codes, the process goes on', {
  timeout: 90_000,
}, async (t) => {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return
  const child = fork(role, [redis.url, 'cache'])
  t.after(() => child.kill('SIGKILL'))
  const next = async (): Promise<Tallies> => (await once(child, 'message'))[0]
  const told = (): Promise<Tallies> => {
    child.send('tell')
    return next()
  }
  await next()
  await untilCalm(async () => (await told()).set.values > 0, 'it writes to Redis')

  await redis.kill('SIGKILL')
  // The first calls are those that find out, and `get` may answer from memory for as long as the drift.
  await untilCalm(async () => {
    const known = await told()
    return DIRECT.every((name) => known[name].values === 0 && known[name].errors.StoreUnavailable !== undefined)
  }, 'it knows')
  await sleep(OUTAGE)
  const gone = await told()
  assert.equal(child.exitCode, null)
  for (const name of ['stale', 'held', 'loaded'] as const) {
    assert.deepEqual(gone[name].errors, {}, name)
    assert.ok(gone[name].values > 10, `${name}: ${gone[name].values}`)
  }
  // What nobody has an older value of gets the loader's own error.
  assert.deepEqual([gone.failing.values, Object.keys(gone.failing.errors)], [0, ['RangeError']])
  for (const name of DIRECT) {
    assert.deepEqual([gone[name].values, Object.keys(gone[name].errors)], [0, ['StoreUnavailable']], name)
  }

  await redis.restart()
  await untilCalm(async () => (await told()).set.values > 0, 'it writes to Redis again')
  const cache = await Cache.open(redis.url, { prefix: 'cache' })
  t.after(() => cache.close())
  assert.equal(typeof (await cache.get('set')), 'number')
  assert.equal(child.exitCode, null)
})
