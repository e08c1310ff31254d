/** Graphs on Redis: answers that are lost, what remains, and what endings cost. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { scriptOf } from '../../src/stores/redis/connection/scripts.ts'
import { open } from '../../src/stores/redis/index.ts'
import { pack } from '../../src/stores/redis/wire.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs, recordOf } from '../support/jobs.ts'
import { faultyClient } from './redis-faults.ts'
import { connect, freshPrefix, keysOf, removePrefix } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''

/** One whose answers get lost, and another one. */
async function scene(t: TestContext) {
  const prefix = freshPrefix()
  const clock = { now: Date.now() }
  const faulty = faultyClient(url)
  const options = { prefix, clock: () => clock.now }
  const store = await open(url, { ...options, client: faulty.client, timeout: 1000 })
  const other = await open(url, options)
  t.after(async () => {
    await Promise.all([store.close(), other.close()])
    faulty.disconnect()
    await removePrefix(url, prefix)
  })
  return { store, other, faulty, clock, prefix }
}

const complete = ({ operations }: Store, jobs: readonly ClaimedJob[], queue = 'q') =>
  operations.complete({ queue, items: jobs.map((job) => ({ ...job, result: null })) })

const statesOf = async ({ operations }: Store, jobs: readonly { id: string }[]) =>
  (await operations.find({ ids: jobs.map(({ id }) => id) })).map((job) => job?.state)

describe('graphs on Redis', { skip: missingReason('redis') }, () => {
  for (const elsewhere of [false, true]) {
    test(`a push that is sent again, of a job that was there, and one that waits for it${elsewhere ? ', over two queues' : ''}`, async (t) => {
      const { store, faulty } = await scene(t)
      const first = newJob()
      await store.operations.push({ jobs: [first] })
      // The server knows the script.
      await store.operations.push({ jobs: [newJob({ queue: 'r' })], whole: true })
      let lost = 0
      faulty.fault = (script) => (script === 'push-full' && lost++ === 0 ? 'lost' : undefined)
      const child = newJob({ after: [first.id] })
      const jobs = [first, child, ...(elsewhere ? [newJob({ queue: 'r', after: [child.id] })] : [])]
      const [known, pushed] = await store.operations.push({ jobs })
      // The first try may have been the one that stored it.
      assert.deepEqual([known?.id, pushed?.status], [first.id, 'pushed'])
      assert.deepEqual(await complete(store, (await claim(store)).jobs), ['ok'])
      assert.deepEqual(await statesOf(store, [child]), ['waiting'])
    })
  }

  test('a push that is sent again was pushed by its first try', async (t) => {
    const { store, faulty } = await scene(t)
    await store.operations.push({ jobs: [newJob({ queue: 'r' })], whole: true })
    let lost = 0
    faulty.fault = (script) => (script === 'push-full' && lost++ === 0 ? 'lost' : undefined)
    const parent = newJob()
    const children = [newJob({ after: [parent.id] }), newJob({ after: [parent.id] })]
    const outcomes = await store.operations.push({ jobs: [parent, ...children] })
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['pushed', 'pushed', 'pushed'],
    )
    await complete(store, (await claim(store)).jobs)
    assert.deepEqual(await statesOf(store, children), ['waiting', 'waiting'])
  })

  test('a whole push of which another job has a key is refused, and nothing of it remains', async (t) => {
    const { store, other, prefix } = await scene(t)
    await other.operations.push({ jobs: [newJob({ key: 'k' })] })
    await other.operations.configure({ queue: 'r', capacity: 1 })
    const parent = newJob({ key: 'k' })
    const full = [parent, newJob({ queue: 'r', after: [parent.id] }), newJob({ queue: 'r', after: [parent.id] })]
    const outcomes = await store.operations.push({ jobs: full, whole: true })
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['existing', 'withheld', 'full'],
    )
    const client = connect(url)
    t.after(() => client.disconnect())
    const keys = await keysOf(client, prefix)
    assert.deepEqual(
      keys.filter((key) => /:(links|waits|settling|awaiting)$/.test(key)),
      [],
    )
  })

  test('nothing of a graph remains when its jobs are gone', async (t) => {
    const { store, other, clock, prefix } = await scene(t)
    for (const queue of ['q', 'r']) await store.operations.configure({ queue, keepDone: 0, keepDead: 0 })
    const [first, second] = [newJob(), newJob()]
    const children = Array.from({ length: 250 }, () => newJob({ queue: 'r', after: [first.id, second.id] }))
    const awaiting = recordOf({ state: 'blocked', after: [newJob().id] })
    await store.operations.push({ jobs: [first, second, ...children], whole: true })
    await store.operations.restore({ records: [awaiting] })
    await complete(store, (await claim(store, { limit: 2 })).jobs)
    while ((await other.operations.sweep({ limit: 100 })).more);
    await other.operations.remove({ ids: [awaiting.id, ...children.slice(0, 100).map(({ id }) => id)] })
    const { jobs } = await claim(other, { queue: 'r', limit: 250 })
    await complete(other, jobs, 'r')
    // Leases would have run out by then; and what workers last got is not asked for any more.
    for (const ms of [61_000, 601_000]) {
      clock.now += ms
      while ((await other.operations.sweep({ limit: 100 })).more);
    }
    const client = connect(url)
    t.after(() => client.disconnect())
    const keys = await keysOf(client, prefix)
    assert.deepEqual(
      keys
        .map((key) => key.slice(key.lastIndexOf(':') + 1))
        .filter((key) => key !== 'queue')
        .toSorted(),
      ['floor', 'queues', 'version'].filter((key) => key !== 'floor'),
    )
  })

  test('a fan-in of ten thousand costs an ending the same as one of ten', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const store = await open(redis.url, {})
    t.after(() => store.close())
    const bytesOfAnEnding = async (count: number) => {
      const queue = `q${count}`
      const parents = newJobs(count, { queue })
      for (let at = 0; at < count; at += 500) await store.operations.push({ jobs: parents.slice(at, at + 500) })
      await store.operations.push({ jobs: [newJob({ queue: 'c', after: parents.map(({ id }) => id) })] })
      const { jobs } = await claim(store, { queue, limit: 5 })
      const written = async () => Number(/aof_current_size:(\d+)/.exec(await redis.command('info', 'persistence'))?.[1])
      const before = await written()
      for (const job of jobs) await complete(store, [job], queue)
      return ((await written()) - before) / jobs.length
    }
    const few = await bytesOfAnEnding(10)
    const many = await bytesOfAnEnding(10_000)
    assert.ok(many - few < 20, `${few} and ${many} bytes`)
    const plain = newJobs(5, { queue: 'plain' })
    await store.operations.push({ jobs: plain })
    await claim(store, { queue: 'plain' })
  })

  test('a claim that is repeated too late gives what its first try got', async (t) => {
    const { other, prefix } = await scene(t)
    await other.operations.push({ jobs: [newJob()] })
    const client = connect(url)
    t.after(() => client.disconnect())
    const { text } = scriptOf('claim')
    const call = (latest: number, again: 0 | 1) => {
      const head = pack([null, 'bells', 'origin', 'q', 1, 60_000, 'w', 'call', latest, 0, 1])
      return client.callBuffer('eval', text, 1, `{${prefix}}:`, head, again)
    }
    const first = (await call(Number.MAX_SAFE_INTEGER, 0)) as unknown[]
    const again = (await call(1, 1)) as unknown[]
    assert.deepEqual(again[6], first[6])
    assert.deepEqual(((await call(1, 0)) as unknown[])[3], 2)
  })
})
