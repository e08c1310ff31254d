/** What Redis keeps of a job: records that come back as they were, and pages of waiting jobs without gaps. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Store } from '../../src/store.ts'
import { unpack } from '../../src/stores/redis/wire.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { claim, first } from '../conformance/suite.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { complete } from './redis-everything.ts'
import { keyOf, openRedis } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map(({ id }) => id)

describe('records and pages in redis', { skip: missingReason('redis') }, () => {
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
        await check({ store, clock, client, key: (name) => keyOf(prefix, 'q', name) })
      } finally {
        client.disconnect()
        await dispose()
      }
    })

  onStore('what is pushed comes back, whatever it is', async ({ store }) => {
    const bodies = ['0', '"ü€😀"', `"${'x'.repeat(300)}"`, `"${'é'.repeat(40_000)}"`]
    const jobs = [
      ...bodies.map((body) => newJob({ data: { encoding: 'json', body } })),
      newJob({ key: `k${'ü'.repeat(100)}`, attempts: 100_000, data: { encoding: 'json', body: '[1]' } }),
      newJob({ group: 'g', timeout: 5, trace: 't', key: 'l', priority: 4 }),
      newJob({ group: 'g' }),
      newJob({ trace: 't' }),
      newJob({ timeout: 2 ** 40 }),
      newJob({ data: { encoding: 'bytes', body: new Uint8Array(70_000).fill(0xff) } }),
      newJob({ data: { encoding: 'bytes', body: new Uint8Array(0) } }),
      newJob({ data: { encoding: 'msgpack', body: new Uint8Array([0xc4, 1, 2]) } }),
    ]
    await store.operations.push({ jobs })
    const claimed = (await claim(store)).jobs
    for (const [i, { id, key, attempts, group, timeout, trace, data }] of jobs.entries()) {
      const { [i]: job } = claimed
      assert.partialDeepStrictEqual(job, { id, key, attempts, group, timeout, trace, data })
      assert.partialDeepStrictEqual(first(await store.operations.find({ ids: [id] })), {
        id,
        key,
        attempts,
        group,
        timeout,
        trace,
        data,
      })
    }
  })

  onStore('places past four bytes and ids of any kind come back as they were', async ({ store, client, key }) => {
    await client.hset(key('queue'), 'place:4', 2 ** 32 - 3)
    const jobs = [
      ...newJobs(8),
      newJob({ id: '00000000-0000-1000-8000-000000000000' }),
      newJob({ id: 'ffffffff-ffff-4fff-bfff-ffffffffffff' }),
    ]
    await store.operations.push({ jobs })
    assert.deepEqual(
      idsOf((await store.operations.list({ queue: 'q', state: 'waiting', limit: 100 })).jobs),
      idsOf(jobs),
    )
    const held = (await claim(store)).jobs
    assert.deepEqual(idsOf(held), idsOf(jobs))
    await store.operations.release({ queue: 'q', items: held.toReversed() })
    assert.deepEqual(idsOf((await claim(store)).jobs), idsOf(jobs))
  })

  // Not what the server says that it takes: that depends on how its allocator rounds.
  onStore(
    'a waiting job takes 17 bytes in a page, and a record 20 bytes and its queue longer than its data',
    async (context) => {
      const { store, client, key } = context
      const count = 900
      const data: NewJob['data'] = { encoding: 'json', body: '{"n":12345}' }
      const jobs = Array.from({ length: count }, () => newJob({ id: newId(), data }))
      await store.operations.push({ jobs })
      const pages = await client.hvalsBuffer(key('pages'))
      assert.equal(
        pages.reduce((sum, page) => sum + page.length, 0),
        17 * count,
      )
      assert.equal(pages.length, count / 90)
      const lengths = (await client.hvalsBuffer(key('jobs'))).map(({ length }) => length)
      assert.ok(Math.max(...lengths) <= data.body.length + 22, `${Math.max(...lengths)}`)
      assert.equal(await client.exists(key('states'), key('keys'), key('scheduled')), 0)
    },
  )

  onStore('cancelled jobs leave no gap, wherever they stood', async ({ store, client, key }) => {
    const jobs = newJobs(1000)
    await store.operations.push({ jobs })
    await store.operations.configure({ queue: 'q', keepDead: 0 })
    const live = jobs.filter((_, i) => i % 300 === 7)
    await store.operations.cancel({ ids: idsOf(jobs.filter((job) => !live.includes(job)).toReversed()) })
    assert.equal(await client.hlen(key('pages')), live.length)
    assert.equal(await client.zcard(key('waiting')), live.length)
    assert.deepEqual(
      idsOf((await store.operations.list({ queue: 'q', state: 'waiting', limit: 10 })).jobs),
      idsOf(live),
    )
    // The same ids again have new places.
    const again = jobs.slice(0, 2).toReversed()
    await store.operations.push({ jobs: again })
    assert.deepEqual(idsOf((await claim(store, { limit: 5 })).jobs), idsOf([...live, ...again].slice(0, 5)))
    await complete(store, (await claim(store)).jobs)
    assert.equal(await client.exists(key('pages'), key('waiting')), 0)
  })

  onStore('an error that cannot be read hides no job', async ({ store, client, key }) => {
    const jobs = newJobs(3)
    await store.operations.push({ jobs })
    const claims = (await claim(store)).jobs
    await store.operations.fail({ queue: 'q', items: claims.map((held) => ({ ...held, error: ERROR, delay: null })) })
    const [garbled, alien] = jobs
    assert.ok(garbled && alien)
    const idOf = ({ id }: NewJob): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex')
    await client.hset(key('errors'), idOf(garbled), Buffer.from([0xc1, 0xff]))
    await client.hset(key('errors'), idOf(alien), Buffer.from([0x93, 1, 2, 3]))
    const { jobs: listed } = await store.operations.list({ queue: 'q', state: 'dead', limit: 10 })
    const found = await store.operations.find({ ids: idsOf(jobs) })
    for (const records of [found, listed.toSorted((a, b) => (a.id < b.id ? -1 : 1))]) {
      assert.deepEqual(
        records.map((record) => record?.error?.code),
        ['PayloadNotDecodable', 'PayloadNotDecodable', ERROR.code],
      )
    }
  })

  onStore(
    'earlier clients read a worker with lanes: all behind its host are numbers',
    async ({ store, client, key }) => {
      const lanes = [{ minPriority: 8, reserve: 2 }]
      const worker = { id: 'w', queue: 'q', host: 'h', pid: 7, slots: 10, busy: 1, lanes }
      await store.operations.heartbeat({ workers: [worker], gone: [] })
      const kept = await client.hgetBuffer(key('workers'), 'w')
      assert.ok(kept)
      assert.deepEqual(unpack(kept), [['q', 'h', 7, 10, 1, EPOCH, EPOCH, 8, 2]])
    },
  )
})
