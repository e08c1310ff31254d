/**
 * Redis names a job by the last bytes of its id. Ids that end alike are twins: whatever their order, they are as good as any
 * others. And what a record leaves out, because it can be told from the id, comes back as it was.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import type { NewJob, Store } from '../../src/store.ts'
import { claim, first, newJob, newJobs } from '../conformance/suite.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { Driver } from '../model/driver.ts'
import { IDS, operation } from '../model/operations.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { complete } from './redis-everything.ts'
import { openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''

/** Ids of the same end. */
const twin = (n: number, end = 0xabc): string =>
  `019b76da-a800-7000-8000-${end.toString(16).padStart(12, '0')}`.replace('8000', (0x8000 + n).toString(16))
const twins = (count: number, given: Partial<NewJob> = {}): NewJob[] =>
  Array.from({ length: count }, (_, n) => newJob({ id: twin(n), ...given }))
const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map(({ id }) => id)

/** A value with every text that the map knows replaced, wherever it stands. */
function translated(value: unknown, texts: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return texts.get(value) ?? value
  if (Array.isArray(value)) return value.map((item) => translated(item, texts))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, translated(item, texts)]))
}

/** An object that is called with other ids than those that come and go outside. */
function renamed<T extends object>(inner: T, there: ReadonlyMap<string, string>): T {
  const back = new Map([...there].map(([outside, inside]) => [inside, outside]))
  return new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value === 'object' && value !== null) return renamed(value, there)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) =>
        translated(
          await Reflect.apply(
            value,
            target,
            args.map((arg) => translated(arg, there)),
          ),
          back,
        )
    },
  })
}

describe('names of jobs in redis', { skip: missingReason('redis') }, () => {
  const onStore = (
    title: string,
    check: (context: {
      store: Store
      clock: { now: number }
      client: Redis
      key: (name: string) => string
    }) => Promise<void>,
  ) =>
    test(title, async () => {
      const clock = { now: EPOCH }
      const { store, prefix, dispose } = await openRedis(url, { clock: () => clock.now })
      const client = new Redis(url)
      try {
        await check({ store, clock, client, key: (name) => `{${prefix}:q}:${name}` })
      } finally {
        client.disconnect()
        await dispose()
      }
    })

  test('answers as the model does in random sequences where every id has twins', async () => {
    // The queue of an id is told by whether its number is even, so twins are in one queue.
    const names = new Map(IDS.map((id, n) => [id, twin(n, 0xabc + (n % 4))]))
    const property = fc.asyncProperty(fc.array(operation, { maxLength: 80, size: 'max' }), async (operations) => {
      const clock = { now: EPOCH }
      const { store, dispose } = await openRedis(url, { clock: () => clock.now })
      try {
        await new Driver(renamed(store, names), clock, true).run(operations)
      } finally {
        await dispose()
      }
    })
    await fc.assert(property, { numRuns: 150 })
  })

  onStore('twins are told apart, claimed by place, and leave nothing behind', async ({ store, client, key }) => {
    await store.configure({ queue: 'q', keepDone: 0, keepDead: 0 })
    const jobs = [...twins(4), newJob({ delay: 5, id: twin(4) }), newJob({ key: 'k', id: twin(5) })]
    await store.push(jobs.slice(0, 2))
    // Some with the first of their name in the store already, some with it in the same call.
    assert.deepEqual(
      (await store.push([...jobs, ...jobs])).map(({ status }) => status),
      [...jobs.map((_, i) => (i < 2 ? 'existing' : 'pushed')), ...jobs.map(() => 'existing')],
    )
    assert.equal(await client.hget(key('queue'), 'twins'), '5')
    assert.deepEqual(idsOf((await store.find(idsOf(jobs))).map((found) => found ?? newJob())), idsOf(jobs))
    const waiting = [0, 1, 2, 3, 5].map((n) => twin(n))
    assert.deepEqual(idsOf(await store.admin.list({ queue: 'q', state: 'waiting', limit: 10 })), waiting)
    const { jobs: held } = await claim(store)
    assert.deepEqual(idsOf(held), waiting)
    // The one that has the short name goes first: the others are still found, and a late word of it is nobody else's.
    assert.deepEqual(await complete(store, held.slice(0, 1)), ['ok'])
    assert.deepEqual(await complete(store, held.slice(0, 1)), ['stale'])
    const [again] = twins(1)
    assert.ok(again)
    assert.deepEqual(await store.push([again]), [{ status: 'pushed', id: again.id }])
    assert.deepEqual(
      (await store.find(idsOf(jobs))).map((found) => found?.state),
      ['waiting', 'running', 'running', 'running', 'scheduled', 'running'],
    )
    assert.deepEqual(await complete(store, held.slice(1)), ['ok', 'ok', 'ok', 'ok'])
    assert.deepEqual(await store.cancel([again.id, twin(4)]), ['cancelled', 'cancelled'])
    assert.deepEqual(idsOf((await claim(store)).jobs), [])
    assert.equal(await client.hget(key('queue'), 'twins'), '0')
    assert.equal(await client.exists(key('jobs'), key('states'), key('keys'), key('returned')), 0)
  })

  onStore(
    'a job that ends like one whose hole is still in the list waits behind it',
    async ({ store, client, key }) => {
      const [gone, heir, other] = twins(3)
      assert.ok(gone && heir && other)
      await store.configure({ queue: 'q', keepDone: 0, keepDead: 0 })
      await store.push([gone])
      await store.cancel([gone.id])
      await store.push([heir, other, gone])
      assert.equal((await store.stats({ queue: 'q' }))[0]?.counts.waiting, 3)
      const { jobs } = await claim(store)
      assert.deepEqual(idsOf(jobs), [heir.id, other.id, gone.id])
      assert.equal(await client.hget(key('queue'), 'holes'), '0')
      await complete(store, jobs)
      assert.equal(await client.exists(key('jobs'), key('states')), 0)
    },
  )

  onStore(
    'times far from that of the id, and places past four bytes, come back as they were',
    async ({ store, clock, client, key }) => {
      const made = 0x019b76daa800
      await client.hset(key('queue'), 'place', 2 ** 32 - 3)
      const since = [0, -32_768, 32_767, -32_769, 32_768, 1, 65_536, -65_536, 31_536_000_000]
      const pushed: string[] = []
      for (const ms of since) {
        clock.now = made + ms
        const jobs = newJobs(2, { key: null, trace: ms === 1 ? 't' : null })
        await store.push(jobs)
        pushed.push(...idsOf(jobs))
      }
      const times = since.flatMap((ms) => [made + ms, made + ms])
      const listed = await store.admin.list({ queue: 'q', state: 'waiting', limit: 100 })
      assert.deepEqual(idsOf(listed), pushed)
      assert.deepEqual(
        listed.map(({ pushedAt }) => pushedAt),
        times,
      )
      const { jobs } = await claim(store)
      assert.deepEqual(
        jobs.map(({ pushedAt }) => pushedAt),
        times,
      )
      // By place again, which the script reads from the records.
      await store.release('q', jobs)
      assert.deepEqual(idsOf((await claim(store)).jobs), pushed)
    },
  )

  onStore('what is pushed comes back, whatever it is', async ({ store }) => {
    const bodies = ['0', '"ü€😀"', `"${'x'.repeat(300)}"`, `"${'é'.repeat(40_000)}"`]
    const jobs = [
      ...bodies.map((body) => newJob({ data: { encoding: 'json', body } })),
      newJob({ key: `k${'ü'.repeat(100)}`, attempts: 100_000, data: { encoding: 'json', body: '[1]' } }),
      newJob({ group: 'g', timeout: 5, trace: 't', key: 'l', priority: 4 }),
      newJob({ data: { encoding: 'bytes', body: new Uint8Array(70_000).fill(7) } }),
      newJob({ data: { encoding: 'msgpack', body: new Uint8Array([0xc4, 1, 2]) } }),
    ]
    await store.push(jobs)
    const claimed = (await claim(store)).jobs
    for (const [i, { id, key, attempts, group, timeout, trace, data }] of jobs.entries()) {
      const { [i]: job } = claimed
      assert.partialDeepStrictEqual(job, { id, key, attempts, group, timeout, trace, data })
      assert.partialDeepStrictEqual(first(await store.find([id])), { id, key, attempts, group, timeout, trace, data })
    }
  })

  test('a waiting job with a small payload takes no more than 112 bytes, with any allocator', async () => {
    const { store, prefix, dispose } = await openRedis(url)
    const client = new Redis(url)
    try {
      const { newId } = await import('../../src/ids.ts')
      const count = 10_000
      for (let n = 0; n < count; n += 500) {
        const body = (i: number) => `{"n":${10_000 + n + i}}`
        await store.push(
          Array.from({ length: 500 }, (_, i) => newJob({ id: newId(), data: { encoding: 'json', body: body(i) } })),
        )
      }
      const size = async (name: string) => Number(await client.memory('USAGE', `{${prefix}:q}:${name}`, 'SAMPLES', 0))
      const bytes = ((await size('jobs')) + (await size('fresh:4'))) / count
      assert.ok(bytes <= 112, `${bytes}`)
      assert.equal(await client.exists(`{${prefix}:q}:states`, `{${prefix}:q}:returned`), 0)
    } finally {
      client.disconnect()
      await dispose()
    }
  })
})
