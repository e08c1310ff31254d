/** Steps on Redis: answers that get lost, links of an earlier life, what remains, and what other jobs pay for it. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import type { Hold, NewEntry, Park } from '../../src/values/jobs/records.ts'
import { claim, first, running } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, NULL, newJob, newJobs } from '../support/jobs.ts'
import { complete } from './redis-everything.ts'
import { faultyClient } from './redis-faults.ts'
import { freshPrefix, keysOf, removePrefix } from './redis-fixture.ts'
import { monitored } from './redis-monitor.ts'

const url = serverUrl('redis') ?? ''

const entry = (name: string): NewEntry => ({ name, meta: '{}', body: NULL })
const PARK: Park = { until: null, signals: 0, after: [], entries: [], reason: '{}' }
const release = ({ operations }: Store, holds: readonly Hold[], park: Partial<Park> = {}) =>
  operations.release({ queue: 'q', items: holds.map((hold) => ({ ...hold, park: { ...PARK, ...park } })) })
const find = async ({ operations }: Store, id: string) => first(await operations.find({ ids: [id] }))
const namesOf = async ({ operations }: Store, id: string) =>
  first(await operations.entries({ items: [{ id, after: 0 }] }))?.entries.map(({ name }) => name)

/** A store that loses each answer to these scripts once, after the server has acted. */
async function scene(t: TestContext) {
  const prefix = freshPrefix()
  const faulty = faultyClient(url)
  const lost = new Set<string>()
  faulty.fault = (script) => (lost.delete(script) ? 'lost' : undefined)
  const store = await open(url, { prefix, client: faulty.client })
  const client = new Redis(url)
  t.after(async () => {
    await store.close()
    faulty.disconnect()
    client.disconnect()
    await removePrefix(url, prefix)
  })
  // Faults are of scripts that the server knows.
  const hold = await running(store)
  await store.operations.journal({ queue: 'q', items: [{ ...hold, entries: [] }] })
  await store.operations.signal({ items: [] })
  await store.operations.signal({ items: [{ id: hold.id, ...entry('!go/0') }] })
  await release(store, [hold], { until: 0 })
  await store.operations.remove({ ids: [hold.id] })
  return { store, prefix, lost, client }
}

describe('steps on Redis', { skip: missingReason('redis') }, () => {
  test('entries whose answer is lost are there once', async (t) => {
    const { store, lost } = await scene(t)
    const hold = await running(store)
    lost.add('journal')
    const items = [{ ...hold, entries: [entry('=a'), entry('=b')] }]
    assert.deepEqual(await store.operations.journal({ queue: 'q', items }), ['ok'])
    assert.equal(lost.size, 0)
    assert.deepEqual(await namesOf(store, hold.id), ['=a', '=b'])
    assert.equal((await find(store, hold.id))?.journal, 2)
  })

  test('a signal whose answer is lost is there once, and wakes its job', async (t) => {
    const { store, lost } = await scene(t)
    const hold = await running(store)
    await release(store, [hold])
    lost.add('signal')
    const items = [{ id: hold.id, ...entry('!go/1') }]
    assert.deepEqual(await store.operations.signal({ items }), [{ status: 'ok', id: hold.id }])
    assert.equal(lost.size, 0)
    assert.deepEqual(await namesOf(store, hold.id), ['!go/1'])
    assert.equal((await find(store, hold.id))?.state, 'waiting')
    await store.operations.cancel({ ids: [hold.id] })
    assert.deepEqual(await store.operations.signal({ items }), [{ status: 'ended', id: hold.id }])
  })

  test('a park whose answer is lost has taken effect once, whatever the job waits for', async (t) => {
    const { store, lost } = await scene(t)
    const other = newJob({ queue: 'r' })
    await store.operations.push({ jobs: [other] })
    const until = Date.now() + 3_600_000
    for (const [park, state] of [
      [{ until: 0 }, 'waiting'],
      [{ until }, 'scheduled'],
      [{ after: [other.id] }, 'blocked'],
    ] as const) {
      const hold = await running(store)
      lost.add('release')
      assert.deepEqual(await release(store, [hold], { ...park, entries: [entry('=nap')] }), ['ok'])
      assert.equal(lost.size, 0)
      const record = await find(store, hold.id)
      assert.deepEqual([record?.state, record?.attempt, record?.journal, record?.fence], [state, 0, 1, hold.fence])
      await store.operations.remove({ ids: [hold.id] })
    }
  })

  test('two jobs of one call may wait for each other', async (t) => {
    const { store } = await scene(t)
    await store.operations.push({ jobs: newJobs(2) })
    const { jobs } = await claim(store)
    const [a, b] = jobs
    assert.ok(a && b)
    const items = [
      { ...a, park: { ...PARK, after: [b.id] } },
      { ...b, park: { ...PARK, after: [a.id] } },
    ]
    assert.deepEqual(await store.operations.release({ queue: 'q', items }), ['ok', 'ok'])
    await store.operations.cancel({ ids: [a.id] })
    assert.equal((await find(store, b.id))?.state, 'waiting')
  })

  test('nothing of a journal remains once its job is gone, however it went', async (t) => {
    const { store, client, prefix } = await scene(t)
    const { operations } = store
    const removals: ((hold: Hold) => Promise<unknown>)[] = [
      (hold) => complete(store, [hold]),
      (hold) => operations.fail({ queue: 'q', items: [{ ...hold, error: ERROR, delay: null }] }),
      ({ id }) => operations.cancel({ ids: [id] }),
      ({ id }) => operations.remove({ ids: [id] }),
      async (hold) => {
        await release(store, [hold], { signals: 1 })
        await operations.cancel({ ids: [hold.id] })
      },
      async (hold) => {
        await release(store, [hold], { signals: 1 })
        await operations.bulk({ queue: 'q', state: 'scheduled', change: { kind: 'cancel' }, limit: 10 })
      },
    ]
    for (const keep of [0, 1]) {
      await operations.configure({ queue: 'q', keepDone: keep, keepDead: keep })
      for (const remove of removals) {
        const hold = await running(store)
        await operations.journal({ queue: 'q', items: [{ ...hold, entries: [entry('=a')] }] })
        await operations.signal({ items: [{ id: hold.id, ...entry('!go/1') }] })
        await remove(hold)
        while ((await find(store, hold.id)) !== null) await operations.sweep({ limit: 100 })
        const names = (await keysOf(client, prefix)).map((key) =>
          key.slice(`{${prefix}}:`.length).replace(/:.*-.*/, ''),
        )
        const left = names.filter((name) => ['journals', 'journal', 'entries', 'parked'].includes(name))
        assert.deepEqual(left, [])
      }
    }
  })

  test('many parks of a call, of all kinds, have their own entries and parents', async (t) => {
    const { store } = await scene(t)
    const others = newJobs(3, { queue: 'r' })
    await store.operations.push({ jobs: [...others, ...newJobs(450)] })
    const holds: Hold[] = []
    while (holds.length < 450) holds.push(...(await claim(store, { limit: 450 })).jobs)
    const items = holds.map((hold, n) => ({
      ...hold,
      ...(n % 3 > 0 && {
        park: {
          ...PARK,
          entries: Array.from({ length: n % 4 }, (_, i) => entry(`=${n}.${i}`)),
          after: n % 3 === 1 ? others.slice(0, n % 5).map(({ id }) => id) : [],
          reason: `"${n}"`,
        },
      }),
    }))
    const outcomes = await store.operations.release({ queue: 'q', items })
    assert.deepEqual(new Set(outcomes), new Set(['ok']))
    const found = await store.operations.find({ ids: holds.map(({ id }) => id) })
    for (const [n, record] of found.entries()) {
      const isParked = n % 3 > 0
      const waitsFor = n % 3 === 1 ? Math.min(3, n % 5) : 0
      assert.deepEqual(
        [record?.state, record?.journal ?? 0, record?.parked, record?.waitsFor ?? 0],
        isParked ? [waitsFor > 0 ? 'blocked' : 'scheduled', n % 4, `"${n}"`, waitsFor] : ['waiting', 0, undefined, 0],
        `${n}`,
      )
    }
    const pages = await store.operations.entries({ items: holds.map(({ id }) => ({ id, after: 0 })) })
    for (const [n, page] of pages.entries()) {
      const names = Array.from({ length: n % 3 > 0 ? n % 4 : 0 }, (_, i) => `=${n}.${i}`)
      assert.deepEqual(
        page?.entries.map(({ name }) => name),
        names,
      )
    }
  })

  test('jobs without steps cost no command for them, and a look at jobs three', async (t) => {
    const server = await started(t, () => startRedis({ appendonly: false }))
    if (server === undefined) return
    const store = await open(server.url, {})
    const look = new Redis(server.url)
    const heard: string[][] = []
    const stop = await monitored(server.url, (args, isScript) => {
      if (isScript && /:(?:journals|journal:.*|entries:.*|parked)$/.test(args[1] ?? '')) heard.push(args)
      if (args[1] === 'end') heard.push(['end'])
    })
    t.after(async () => {
      stop()
      look.disconnect()
      await store.close()
    })
    const { operations } = store
    // Another queue has steps.
    await operations.push({ jobs: [newJob({ queue: 'steps' })] })
    const [other] = (await claim(store, { queue: 'steps' })).jobs
    assert.ok(other)
    await operations.journal({ queue: 'steps', items: [{ ...other, entries: [entry('=a')] }] })
    await look.set('end', '')
    while (heard.at(-1)?.[0] !== 'end') await new Promise(setImmediate)
    heard.length = 0
    await operations.configure({ queue: 'q', keepDone: 0, keepDead: 0 })
    await operations.push({ jobs: newJobs(60) })
    const { jobs } = await claim(store, { limit: 50 })
    await complete(store, jobs.slice(0, 10))
    const some = (from: number) => jobs.slice(from, from + 10)
    await operations.fail({ queue: 'q', items: some(10).map((job) => ({ ...job, error: ERROR, delay: null })) })
    await operations.release({ queue: 'q', items: some(20) })
    await operations.cancel({ ids: some(30).map(({ id }) => id) })
    await operations.remove({ ids: some(40).map(({ id }) => id) })
    await operations.sweep({ limit: 100 })
    assert.deepEqual(
      heard.filter(([command]) => command !== 'end'),
      [],
    )
    await operations.find({ ids: jobs.slice(0, 5).map(({ id }) => id) })
    await look.set('end', '')
    while (heard.at(-1)?.[0] !== 'end') await new Promise(setImmediate)
    assert.deepEqual(
      heard.map(([command = '']) => command.toLowerCase()),
      ['exists', 'hmget', 'hmget', 'end'],
    )
  })
})
