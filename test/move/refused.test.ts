/** What the target does not take: where it stays, who may have it, and what a move that ends with an error puts back. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import pg from 'pg'
import { move } from '../../src/move/index.ts'
import type { Batch } from '../../src/move/source.ts'
import { open as openBullMQ } from '../../src/move/sources/bullmq/index.ts'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { plain, stores } from '../conformance/stores.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { after } from '../support/cleaning.ts'
import { newJobs } from '../support/jobs.ts'

const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)

/** A target that answers so instead of storing these. */
const refusing = (store: Store, code: 'PayloadTooLarge' | 'StoreFull', isMeant = (_input: string) => true): Store =>
  around(store, (name, input, next) =>
    name === 'restore' && isMeant(JSON.stringify(input))
      ? Promise.reject(new MillpondError(code, 'refused'))
      : next(input),
  )

const stateOf = async ({ operations }: Store, id: string) => (await operations.find({ ids: [id] }))[0]?.state

test('a job that is refused comes back at the source by itself, and a move that goes on leaves it there', async (t) => {
  let now = 1_800_000_000_000
  const source = await memory.open({ clock: () => now })
  const target = await memory.open()
  after(t, source.dispose)
  after(t, target.dispose)
  const [refused, ...others] = newJobs(3)
  assert.ok(refused)
  await source.store.operations.push({ jobs: [refused, ...others] })
  let tries = 0
  const picky = refusing(target.store, 'PayloadTooLarge', (input) => input.includes(refused.id) && ++tries > 0)
  const stop = new AbortController()
  let passes = 0
  const states: unknown[] = []
  const { sweep } = source.store.operations
  // A pass has ended.
  const watched: typeof sweep = async (input) => {
    if (++passes === 2) now += 60_000
    if (passes === 4) stop.abort()
    const swept = await sweep(input)
    states.push(await stateOf(source.store, refused.id))
    return swept
  }
  const from = { ...source.store, operations: { ...source.store.operations, sweep: watched } }
  const report = await move(from, picky, { follow: true, signal: stop.signal })
  assert.deepEqual([report.moved, report.queues[0]?.left, report.remaining], [2, { PayloadTooLarge: 1 }, 1])
  assert.deepEqual(states, ['scheduled', 'waiting', 'waiting', 'waiting'])
  // In its batch, in half of it, and alone.
  assert.equal(tries, 3)
})

test('a target that is full does not keep the whole queue from the workers of the source', async (t) => {
  const source = await memory.open()
  const target = await plain.open()
  after(t, source.dispose)
  after(t, target.dispose)
  await source.store.operations.push({ jobs: newJobs(6000) })
  let room = 100
  const { push } = target.store.operations
  const bounded: typeof push = async ({ jobs }) => {
    const outcomes = await push({ jobs: jobs.slice(0, room) })
    room -= outcomes.length
    return jobs.map((job, index) => outcomes[index] ?? { status: 'full', id: job.id })
  }
  const full = { ...target.store, operations: { ...target.store.operations, push: bounded } }
  const stop = new AbortController()
  const watched = around(source.store, (name, input, next) => {
    if (name === 'sweep') stop.abort()
    return next(input)
  })
  const options = { settings: false, signal: stop.signal }
  const report = await move(watched, full, options)
  assert.equal(report.moved, 100)
  const [stats] = await source.store.operations.stats({ queue: 'q' })
  assert.ok((stats?.counts.waiting ?? 0) >= 3000, `${stats?.counts.waiting} wait`)
})

const skipRedis = missingReason('redis')

/** A queue of BullMQ's with so many jobs that wait, their ids 1, 2, 3 … */
async function bullQueue(t: Parameters<typeof after>[0], count: number) {
  const address = serverUrl('redis') ?? ''
  const client = new Redis(address)
  const prefix = `bull-${randomUUID()}`
  const ids = Array.from({ length: count }, (_, n) => `${n + 1}`)
  const base = `${prefix}:q:`
  await client.hset(`${base}meta`, 'version', 'bullmq:5')
  await client.lpush(`${base}wait`, ...ids)
  const pipeline = client.pipeline()
  for (const id of ids) pipeline.hset(base + id, { name: 'n', data: id, opts: '{}', timestamp: 1_800_000_000_000 })
  await pipeline.exec()
  after(t, async () => {
    await client.del(
      `${base}meta`,
      `${base}wait`,
      `${base}millpond-move`,
      `${base}marker`,
      ...ids.map((id) => base + id),
    )
    client.disconnect()
  })
  const waiting = () => client.lrange(`${base}wait`, 0, -1)
  return { url: `bullmq+${address}?prefix=${prefix}`, client, base, ids, waiting }
}

test('BullMQ: a move ends where the target refuses a job, and the job waits at its place', {
  skip: skipRedis,
}, async (t) => {
  const { url, waiting } = await bullQueue(t, 5)
  const { store, dispose } = await memory.open()
  after(t, dispose)
  const refuses = (data: string) => (input: string) => input.includes(`\\"data\\":${data}}`)
  const picky = refusing(refusing(store, 'PayloadTooLarge', refuses('2')), 'PayloadTooLarge', refuses('4'))
  const report = await move(url, picky, { settings: false })
  assert.deepEqual([report.moved, report.queues[0]?.left], [3, { PayloadTooLarge: 2 }])
  // The last one starts first.
  assert.deepEqual(await waiting(), ['4', '2'])
})

test('BullMQ: what an earlier move had taken is not put back by one that fails', { skip: skipRedis }, async (t) => {
  const { url, client, base, ids, waiting } = await bullQueue(t, 1200)
  await client.del(`${base}wait`)
  await client.hset(`${base}millpond-move`, Object.fromEntries(ids.map((id) => [id, 'wait 0'])))
  const { store, dispose } = await memory.open()
  after(t, dispose)
  await assert.rejects(move(url, refusing(store, 'StoreFull'), { settings: false }), { code: 'StoreFull' })
  assert.deepEqual(await waiting(), [])
  assert.equal((await move(url, store, { settings: false })).moved, 1200)
})

test('BullMQ: a batch puts back what no other move has taken up', { skip: skipRedis }, async (t) => {
  const { url, waiting } = await bullQueue(t, 2)
  const [one, other] = await Promise.all([1, 2].map(() => openBullMQ(url, () => {}, new AbortController().signal)))
  assert.ok(one && other)
  after(t, () => one.close())
  after(t, () => other.close())
  const first = async (batches: AsyncIterable<Batch>) => {
    for await (const batch of batches) return batch
    throw new Error('there is none')
  }
  const mine = await first(one.pass('q'))
  const taken = await first(other.leftovers('q'))
  await mine.abandon()
  await taken.abandon()
  assert.deepEqual(await waiting(), [])
  await taken.putBack(taken.records, true)
  await other.tend()
  assert.deepEqual(await waiting(), ['2', '1'])
  await (await first(one.pass('q'))).abandon()
  assert.deepEqual(await waiting(), ['2', '1'])
})

test('pg-boss: a move whose target fails ends, and its jobs are unlocked', {
  skip: missingReason('postgres'),
}, async (t) => {
  const url = serverUrl('postgres') ?? ''
  const schema = newSchema()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  after(t, () => client.end())
  after(t, () => dropSchema(schema))
  await client.query(`
    create schema ${schema};
    create type ${schema}.job_state as enum ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
    create table ${schema}.job (
      id uuid default gen_random_uuid(), name text, state ${schema}.job_state default 'created', priority int default 0,
      retry_limit int default 0, retry_count int default 0, policy text, singleton_key text, created_on timestamptz default now(),
      start_after timestamptz default now(), started_on timestamptz, completed_on timestamptz, data jsonb, output jsonb
    );
    insert into ${schema}.job (name) values ('q')`)
  const { store, dispose } = await memory.open()
  after(t, dispose)
  const source = `pgboss+${url}?schema=${schema}`
  await assert.rejects(move(source, refusing(store, 'StoreFull'), { settings: false }), { code: 'StoreFull' })
  assert.equal((await move(source, store, { settings: false })).moved, 1)
})
