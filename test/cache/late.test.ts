/** What a load writes itself is heard of before it is answered: the loader is not called again for that, but it is if somebody else was faster. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { scriptOf } from '../../src/cache/redis/redis-layer.ts'
import type { Script } from '../../src/stores/redis-client/scripts.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { freshPrefix, openCache } from './fixture.ts'

const url = serverUrl('redis') ?? 'redis://127.0.0.1:1'

interface Moments {
  before(): Promise<unknown>
  after(): Promise<unknown>
}

type Call = (...args: unknown[]) => Promise<unknown>

/** A client on which a script and its answer wait for the given moments. */
function lateFor({ sha, text }: Script, moments: Moments) {
  let renewals = 0
  const late = async (call: Call, ...args: unknown[]): Promise<unknown> => {
    const concerned = args[1] === sha || args[1] === text
    if (concerned) await moments.before()
    const answer = await call(...args)
    // By its text where the server did not know it yet.
    if (args[1] === scriptOf('renew').sha || args[1] === scriptOf('renew').text) renewals++
    if (concerned) await moments.after()
    return answer
  }
  const client = new Redis(url)
  const duplicate = client.duplicate.bind(client)
  // The cache makes a connection of its own.
  client.duplicate = (options) => {
    const own = duplicate(options)
    own.callBuffer = late.bind(undefined, own.callBuffer.bind(own) as Call) as typeof own.callBuffer
    return own
  }
  return { client, renewals: () => renewals }
}

const WRITES = [
  ['a value that is gone', scriptOf('drop'), null],
  ['a value that is there', scriptOf('commit'), 'new'],
] as const

const now = () => Promise.resolve()

for (const [name, script, found] of WRITES) {
  async function setUp(t: TestContext) {
    const moments: Moments = { before: now, after: now }
    const { client, renewals } = lateFor(script, moments)
    t.after(() => client.disconnect())
    const prefix = freshPrefix()
    const cache = await openCache(t, { url }, { client, prefix })
    const other = await openCache(t, { url }, { prefix })
    let loads = 0
    const get = cache.wrap<void, string | null>(() => (loads++ === 0 ? 'old' : found), {
      key: () => 'k',
      ttl: 50,
      jitter: 0,
      staleIfError: '1m',
      timeout: 1200,
    })
    assert.equal(await get(), 'old')
    await sleep(60)
    return { moments, renewals, other, get, loads: () => loads }
  }

  test(`${name}, answered late`, { skip: missingReason('redis') }, async (t) => {
    const { moments, renewals, get, loads } = await setUp(t)
    // Long enough for what was written to be heard of, and for a question that would follow from it to be answered.
    moments.after = async () => {
      const end = performance.now() + 100
      await until(() => renewals() > 0 || performance.now() > end)
      await sleep(5)
    }
    assert.equal(await get(), found)
    assert.equal(loads(), 2)
  })

  test(`${name}, invalidated before it is written`, { skip: missingReason('redis') }, async (t) => {
    const { moments, other, get, loads } = await setUp(t)
    moments.before = async () => {
      moments.before = now
      await other.invalidate('k')
    }
    assert.equal(await get(), found)
    assert.equal(loads(), 3)
  })

  test(`${name}, invalidated before it is written, which nobody answers`, {
    skip: missingReason('redis'),
  }, async (t) => {
    const { moments, renewals, other, get, loads } = await setUp(t)
    moments.before = async () => {
      moments.before = now
      await other.invalidate('k')
      const before = renewals()
      await until(() => renewals() > before)
      throw new Error('Connection is closed.')
    }
    assert.equal(await get(), found)
    assert.equal(loads(), 3)
  })
}
