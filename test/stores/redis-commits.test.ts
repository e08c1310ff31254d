/** Each operation on Redis is one commit: nothing is decided in two steps, nothing is left behind, and replicas have it or it is not acknowledged. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { Millpond } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { ClaimedJob, NewJob } from '../../src/values/jobs/records.ts'
import { firingId } from '../../src/values/schedules/firing.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { ERROR, NULL, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { complete } from './redis-everything.ts'
import { bytesOf, contentOf, freshPrefix, keysOf, openRedis, removePrefix } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
const HOUR = 3_600_000

async function scene(t: TestContext) {
  const clock = { now: Date.now() }
  const { store, prefix, dispose } = await openRedis(url, { clock: () => clock.now })
  after(t, dispose)
  return { store, prefix, clock }
}

/** Until the connection stands, the script of graphs is known, and the replica follows. */
async function warm({ operations }: Store): Promise<void> {
  const jobs = [newJob({ queue: 'first' }), newJob({ queue: 'second' })]
  const isConfirmed = () =>
    operations.push({ jobs, whole: true }).then(
      () => true,
      () => false,
    )
  await until(isConfirmed, 'the replica confirms a push')
}

const stateOf = async ({ operations }: Store, { id }: { id: string }) =>
  (await operations.find({ ids: [id] }))[0]?.state
const withClaims = (jobs: readonly ClaimedJob[]) => jobs.map((job) => ({ ...job, claim: job }))

async function kill(store: Store, queue: string): Promise<void> {
  const { jobs } = await claim(store, { queue, limit: 1 })
  const items = withClaims(jobs).map((job) => ({ ...job, error: ERROR, delay: null }))
  assert.deepEqual(await store.operations.fail({ queue, items }), ['dead'])
}

describe('one operation of Redis is one commit', { skip: missingReason('redis') }, () => {
  test('pushes that meet keys of each other are not refused', async (t) => {
    const prefix = freshPrefix()
    after(t, () => removePrefix(url, prefix))
    const ponds = await Promise.all([0, 1, 2].map(() => Millpond.open(`${url}?prefix=${prefix}`)))
    after(t, () => Promise.all(ponds.map((pond) => pond.close())))
    const pushes = ponds.map(async (pond, nth) => {
      const [a, b] = [pond.queue<number>('a'), pond.queue<number>('b')]
      for (const queue of [a, b]) queue.work(async () => {}, { concurrency: 20 })
      for (let n = 0; n < 150; n++) {
        const [first, second] = [[a, n, { key: 'x' }] as const, [b, n, { key: 'y' }] as const]
        await (nth === 0
          ? pond.pushAll([first, second])
          : nth === 1
            ? pond.pushAll([second, first])
            : a.push(n, { key: 'x' }))
      }
    })
    const settled = await Promise.allSettled(pushes)
    assert.deepEqual(
      settled.flatMap((each) => (each.status === 'rejected' ? [String(each.reason)] : [])),
      [],
    )
  })

  test('of a push that is refused nothing is left, not even a job that was cancelled at once', async (t) => {
    const { store, prefix } = await scene(t)
    const { operations } = store
    const client = new Redis(url)
    after(t, () => client.disconnect())
    const parent = newJob({ queue: 'parents' })
    await operations.push({ jobs: [parent] })
    await kill(store, 'parents')
    await operations.configure({ queue: 'small', capacity: 1 })
    await operations.push({ jobs: [newJob({ queue: 'small' }), newJob({ queue: 'children' })] })
    const child = newJob({ queue: 'children', after: [parent.id] })
    const jobs = [child, newJob({ queue: 'children', key: 'k' }), newJob({ queue: 'small' })]
    const outcomes = await operations.push({ jobs, whole: true })
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['withheld', 'withheld', 'full'],
    )
    assert.deepEqual(await operations.find({ ids: jobs.map(({ id }) => id) }), [null, null, null])
    const requeue = { queue: 'children', state: 'cancelled', change: { kind: 'requeue' }, limit: 10 } as const
    assert.equal((await operations.bulk(requeue)).changed, 0)
    for (const key of await keysOf(client, prefix)) {
      const content = await contentOf(client, key)
      for (const { id } of jobs) assert.ok(!content.includes(Buffer.from(id.replaceAll('-', ''), 'hex')), key)
    }
  })

  test('a child of one parent does not wait for the thousands of another', async (t) => {
    const { store } = await scene(t)
    const { operations } = store
    const [many, one] = [newJob({ queue: 'many' }), newJob({ queue: 'one' })]
    const children = newJobs(4000, { queue: 'children', after: [many.id] })
    const child = newJob({ queue: 'children', after: [one.id] })
    for (const jobs of [[many, one, child], children]) await operations.push({ jobs, whole: true })
    for (const queue of ['many', 'one']) await complete(store, (await claim(store, { queue })).jobs, queue)
    await operations.sweep({ limit: 1000 })
    assert.equal(await stateOf(store, child), 'waiting')
    while ((await operations.sweep({ limit: 1000 })).more);
    assert.equal((await operations.stats({ queue: 'children' }))[0]?.counts.waiting, 4001)
  })

  test('a job that is cancelled with a chain behind it takes few calls, and all of the chain with it', async (t) => {
    const { store } = await scene(t)
    const { operations } = store
    const chain: NewJob[] = [newJob({ queue: 'chain' })]
    while (chain.length < 3000) chain.push(newJob({ queue: 'chain', after: [chain.at(-1)?.id ?? ''] }))
    await operations.push({ jobs: chain, whole: true })
    const client = new Redis(url)
    after(t, () => client.disconnect())
    await kill(store, 'chain')
    let sweeps = 0
    while ((await operations.sweep({ limit: 1000 })).more) sweeps++
    assert.ok(sweeps <= 50, `${sweeps} sweeps`)
    assert.equal((await operations.stats({ queue: 'chain' }))[0]?.counts.cancelled, 2999)
  })
})

describe('schedules on Redis', { skip: missingReason('redis') }, () => {
  const declarationOf = (name: string): Declaration => ({
    ...{ name, version: '1', when: 'every 1h', tz: 'UTC', missed: 'all', jitter: 0, from: null, until: null },
    ...{ paused: false, again: false },
    job: {
      ...{ queue: 'q', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null },
      data: NULL,
    },
  })

  /** Fires it for now, whatever the sweep says. */
  async function fire({ operations }: Store, name: string, now: number): Promise<string | undefined> {
    const [schedule] = await operations.schedules({ limit: 1, name })
    const jobs = [newJob({ id: firingId(name, now).id, attempts: null })]
    const firing = { name, version: '1', expected: schedule?.nextAt ?? 0, next: now + HOUR, jobs }
    return (await operations.fire({ firings: [firing] }))[0]?.status
  }

  const work = async (store: Store) => complete(store, (await claim(store, { limit: 100 })).jobs)
  const pushed = async ({ operations }: Store) => (await operations.stats({ queue: 'q' }))[0]?.totals.pushed

  test('a clock that was ahead for a while stops no firing', async (t) => {
    const { store, clock } = await scene(t)
    await store.operations.configure({ queue: 'q', keepDone: 0 })
    await store.operations.declare({ schedules: ['one', 'other'].map(declarationOf) })
    clock.now += 30 * 24 * HOUR
    assert.equal(await fire(store, 'one', clock.now), 'fired')
    await work(store)
    clock.now -= 30 * 24 * HOUR - 1000
    for (let n = 1; n <= 3; n++) {
      assert.equal(await fire(store, 'other', clock.now), 'fired')
      await store.operations.sweep({ limit: 100 })
      assert.deepEqual(await work(store), ['ok'])
      clock.now += HOUR
    }
    assert.equal(await pushed(store), 4)
  })

  test('a firing whose job is done leaves nothing behind', async (t) => {
    const { store, clock, prefix } = await scene(t)
    const client = new Redis(url)
    after(t, () => client.disconnect())
    await store.operations.configure({ queue: 'q', keepDone: 0 })
    await store.operations.declare({ schedules: ['one', 'other'].map(declarationOf) })
    const seconds = async (count: number): Promise<number> => {
      for (let n = 0; n < count; n++) {
        clock.now += 1000
        for (const name of ['one', 'other']) assert.equal(await fire(store, name, clock.now), 'fired')
        await work(store)
        await store.operations.sweep({ limit: 100 })
      }
      return bytesOf(client, await keysOf(client, prefix))
    }
    const before = await seconds(10)
    const grown = (await seconds(100)) - before
    assert.ok(grown < 200, `${grown} bytes more for 200 firings`)
  })
})

test('with wait, no call is acknowledged that no replica has', async (t) => {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return
  const replica = await started(t, () => startRedis({ replicaOf: redis }))
  if (replica === undefined) return
  const store = await openStore(redis.url, {})
  const waiting = await openStore(`${redis.url}?wait=1&timeout=1000`, {})
  after(t, () => Promise.all([store.close(), waiting.close()]))
  const { operations: o } = waiting
  await warm(waiting)

  const schedule = { ...({ when: '@hourly', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null } as const) }
  const job = { queue: 'q', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null, data: NULL }
  const declared = (name: string) => ({ ...schedule, name, version: '1', paused: false, again: false, job })
  await store.operations.declare({ schedules: ['paused', 'removed', 'fired'].map(declared) })
  const [fired] = await store.operations.schedules({ limit: 1, name: 'fired' })
  const live = newJobs(4, { queue: 'live', delay: HOUR })
  const dead = newJob({ queue: 'dead' })
  await store.operations.push({ jobs: [...live, dead, ...newJobs(4, { queue: 'held' })] })
  await kill(store, 'dead')
  const restored = (await store.operations.find({ ids: [live[0]?.id ?? ''] })).filter((record) => record !== null)
  await store.operations.remove({ ids: [live[0]?.id ?? ''] })
  const held = withClaims((await claim(store, { queue: 'held' })).jobs)
  const nth = (at: number) => held.slice(at, at + 1)
  const idOf = (at: number): string => live[at]?.id ?? ''

  // It hears of nothing any more.
  await replica.kill('SIGSTOP')
  const calls: Record<string, () => Promise<unknown>> = {
    push: () => o.push({ jobs: newJobs(1) }),
    'push of a graph': () => {
      const parent = newJob({ queue: 'first' })
      return o.push({ jobs: [parent, newJob({ queue: 'second', after: [parent.id] })], whole: true })
    },
    'push of a child': () => o.push({ jobs: [newJob({ queue: 'second', after: [idOf(1)] })] }),
    complete: () => o.complete({ queue: 'held', items: nth(0).map((each) => ({ ...each, result: null })) }),
    fail: () => o.fail({ queue: 'held', items: nth(1).map((each) => ({ ...each, error: ERROR, delay: null })) }),
    release: () => o.release({ queue: 'held', items: nth(2) }),
    cancel: () => o.cancel({ ids: [idOf(1)] }),
    update: () => o.update({ items: [{ id: idOf(2), priority: 9 }] }),
    requeue: () => o.requeue({ ids: [dead.id] }),
    remove: () => o.remove({ ids: [idOf(3)] }),
    bulk: () => o.bulk({ queue: 'live', state: 'scheduled', change: { kind: 'update', priority: 2 }, limit: 10 }),
    restore: () => o.restore({ records: restored }),
    configure: () => o.configure({ queue: 'q', capacity: 5 }),
    limitGroup: () => o.limitGroup({ queue: 'q', group: 'g', limits: { running: 1, rate: null, weight: 1 } }),
    declare: () => o.declare({ schedules: [declared('new')] }),
    pauseSchedule: () => o.pauseSchedule({ name: 'paused', paused: true }),
    removeSchedule: () => o.removeSchedule({ name: 'removed' }),
    fire: () => {
      const firing = { name: 'fired', version: '1', expected: fired?.nextAt ?? 0, next: null }
      return o.fire({ firings: [{ ...firing, jobs: newJobs(1) }] })
    },
  }
  const outcomes = await Promise.all(
    Object.entries(calls).map(async ([name, call]) => {
      const outcome = await call().then(
        (answer) => `acknowledged: ${JSON.stringify(answer)}`,
        (error: { code?: string }) => error.code,
      )
      return [name, outcome]
    }),
  )
  await replica.kill('SIGCONT')
  const expected = Object.keys(calls).map((name) => [name, 'StoreUnavailable'])
  assert.deepEqual(Object.fromEntries(outcomes), Object.fromEntries(expected))
})

test('with wait, a job of another process is not acknowledged before a replica has it', async (t) => {
  const redis = await started(t, () => startRedis())
  if (redis === undefined) return
  const replica = await started(t, () => startRedis({ replicaOf: redis }))
  if (replica === undefined) return
  const open = async () => {
    const store = await openStore(`${redis.url}?wait=1&timeout=1000`, {})
    after(t, () => store.close())
    await warm(store)
    return store
  }
  const [one, other] = [await open(), await open()]
  await replica.kill('SIGSTOP')
  const job = newJob({ key: 'k' })
  const pushes = [
    () => one.operations.push({ jobs: [job] }),
    // Nothing is written: the job is there.
    () => other.operations.push({ jobs: [newJob({ key: 'k' })] }),
    () => other.operations.push({ jobs: [job, newJob({ key: 'k' })], whole: true }),
  ]
  for (const push of pushes) await assert.rejects(push(), { code: 'StoreUnavailable' })
  await replica.kill('SIGCONT')
})
