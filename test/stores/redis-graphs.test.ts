/** Graphs on Redis whose client dies, or hears no answer, at a step of the push: what others do meanwhile, and what is left. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { scriptOf } from '../../src/stores/redis/connection/scripts.ts'
import { open } from '../../src/stores/redis/index.ts'
import { Partition } from '../../src/stores/redis/partition.ts'
import { pack } from '../../src/stores/redis/wire.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { NULL, newJob, newJobs, recordOf } from '../support/jobs.ts'
import { type FaultyClient, faultyClient } from './redis-faults.ts'
import { connect, freshPrefix, removePrefix } from './redis-fixture.ts'

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

/** The client of this push is no more before it has decided; or before it has started the jobs. */
async function dies(faulty: FaultyClient, before: 'decide' | 'decided', push: () => Promise<unknown>): Promise<void> {
  faulty.fault = (script) => (script === before || script === 'decided' ? 'unreachable' : undefined)
  await push().catch(() => undefined)
}

async function sweepLater({ operations }: Store, clock: { now: number }): Promise<void> {
  clock.now += DEFAULTS.graph.decide + 1
  while ((await operations.sweep({ limit: 100 })).more);
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
      faulty.fault = (script) => (script === 'stage' && lost++ === 0 ? 'lost' : undefined)
      const child = newJob({ after: [first.id] })
      const jobs = [first, child, ...(elsewhere ? [newJob({ queue: 'r', after: [child.id] })] : [])]
      const [known, pushed] = await store.operations.push({ jobs })
      assert.deepEqual([known?.status, pushed?.status], ['existing', 'pushed'])
      assert.deepEqual(await complete(store, (await claim(store)).jobs), ['ok'])
      assert.deepEqual(await statesOf(store, [child]), ['waiting'])
    })
  }

  test('a push that is sent again was pushed by its first try', async (t) => {
    const { store, faulty } = await scene(t)
    await store.operations.push({ jobs: [newJob({ queue: 'r' })], whole: true })
    let lost = 0
    faulty.fault = (script) => (script === 'stage' && lost++ === 0 ? 'lost' : undefined)
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

  test('jobs of a queue that was split anew are where their parents look for them', async (t) => {
    const { store, other, prefix } = await scene(t)
    await store.operations.push({ jobs: ['p', 'c'].map((queue) => newJob({ queue })) })
    while ((await other.operations.remove({ queue: 'c', limit: 100 })).more);
    const splitting = await open(url, { prefix, partitions: 3 })
    t.after(() => splitting.close())
    await splitting.operations.push({ jobs: [newJob({ queue: 'c' })] })
    const parent = newJob({ queue: 'p' })
    const children = Array.from({ length: 8 }, () => newJob({ queue: 'c', after: [parent.id] }))
    const push = () => store.operations.push({ jobs: [parent, ...children] })
    await push().catch(push)
    const { jobs } = await claim(store, { queue: 'p' })
    await complete(store, jobs, 'p')
    assert.deepEqual(
      await statesOf(store, children),
      children.map(() => 'waiting'),
    )
  })

  for (const before of ['decide', 'decided'] as const) {
    for (const queue of ['p', 'c']) {
      test(`a child in ${queue} of a job in p whose client died: ${before}`, async (t) => {
        const { store, other, faulty, clock } = await scene(t)
        const parent = newJob({ queue: 'p' })
        await dies(faulty, before, () =>
          store.operations.push({ jobs: [parent, newJob({ queue: 'r', after: [parent.id] })] }),
        )
        const child = newJob({ queue, after: [parent.id] })
        const [outcome] = await other.operations.push({ jobs: [child] })
        await sweepLater(other, clock)
        const isDecided = before === 'decided'
        assert.equal(outcome?.status, isDecided ? 'pushed' : 'orphan')
        assert.deepEqual(
          await statesOf(other, [parent, child]),
          isDecided ? ['waiting', 'blocked'] : [undefined, undefined],
        )
      })
    }

    test(`a follower whose client died: ${before}`, async (t) => {
      const { store, other, faulty, clock } = await scene(t)
      await store.operations.push({ jobs: [newJob({ key: 'k' })] })
      const { jobs } = await claim(store)
      const follower = newJob({ key: 'k', once: { follow: true } })
      await dies(faulty, before, () => store.operations.push({ jobs: [follower, newJob({ queue: 'r' })], whole: true }))
      assert.deepEqual(await complete(other, jobs), ['ok'])
      clock.now += 1
      await other.operations.sweep({ limit: 100 })
      if (before === 'decide') assert.deepEqual((await claim(other)).jobs, [])
      await sweepLater(other, clock)
      clock.now += 1
      await other.operations.sweep({ limit: 100 })
      assert.deepEqual(await statesOf(other, [follower]), [before === 'decided' ? 'waiting' : undefined])
    })

    test(`a push that replaces a follower whose client died: ${before}`, async (t) => {
      const { store, other, faulty, clock } = await scene(t)
      await store.operations.push({ jobs: [newJob({ key: 'k' })] })
      await claim(store)
      const follower = newJob({ key: 'k', once: { follow: true } })
      await dies(faulty, before, () => store.operations.push({ jobs: [follower, newJob({ queue: 'r' })], whole: true }))
      const again = newJob({ key: 'k', once: { follow: true } })
      const [outcome] = await other.operations.push({ jobs: [again] })
      const isDecided = before === 'decided'
      assert.deepEqual(outcome, { status: isDecided ? 'replaced' : 'pushed', id: (isDecided ? follower : again).id })
      await sweepLater(other, clock)
      assert.deepEqual(await statesOf(other, [outcome]), ['scheduled'])
    })
  }

  for (const ending of ['expired', 'removed'] as const) {
    test(`a parent that was cancelled, and is ${ending}, before its graph starts`, async (t) => {
      const { store, other, faulty, clock } = await scene(t)
      const parent = newJob({ queue: 'p' })
      const child = newJob({ queue: 'c', after: [parent.id], onDead: 'run' })
      await other.operations.configure({ queue: 'p', keepDead: 1000 })
      await dies(faulty, 'decided', () => store.operations.push({ jobs: [parent, child] }))
      assert.deepEqual(await other.operations.cancel({ ids: [parent.id] }), ['cancelled'])
      clock.now += 1001
      if (ending === 'expired') await other.operations.sweep({ limit: 100 })
      else await other.operations.remove({ ids: [parent.id] })
      await sweepLater(other, clock)
      assert.deepEqual(await statesOf(other, [parent, child]), [undefined, 'waiting'])
    })
  }

  test('a job that is done before all of its graph have started', async (t) => {
    const { store, other, faulty, clock } = await scene(t)
    await other.operations.configure({ queue: 'q', keepDone: 0 })
    const first = newJob()
    const second = newJob({ after: [first.id], priority: 5 })
    const last = newJob({ queue: 'c', after: [second.id] })
    const others = newJobs(DEFAULTS.graph.step)
    let started = 0
    faulty.fault = (script, _, key) =>
      script === 'decided' && (key.includes(':c:') || started++ > 0) ? 'unreachable' : undefined
    await store.operations.push({ jobs: [first, ...others, second, last] })
    assert.deepEqual(await complete(other, (await claim(other, { limit: 1 })).jobs), ['ok'])
    // Whoever ends the next one dies before it tells the children.
    const { jobs } = await claim(store, { limit: 1 })
    assert.deepEqual(
      jobs.map(({ id }) => id),
      [second.id],
    )
    faulty.fault = (script) => (script === 'settle' || script === 'settled' ? 'unreachable' : undefined)
    await complete(store, jobs).catch(() => undefined)
    await sweepLater(other, clock)
    assert.deepEqual(await statesOf(other, [second, last]), [undefined, 'waiting'])
  })

  for (const whole of [false, true]) {
    test(`what could not be replaced is not told as replaced${whole ? ', of all or none' : ''}`, async (t) => {
      const { store, faulty } = await scene(t)
      const first = newJob({ key: 'k', delay: 1e6 })
      await store.operations.push({ jobs: [first] })
      const replacing = newJob({ key: 'k', once: { replace: true } })
      const jobs = [newJob({ queue: 'r' }), replacing]
      faulty.fault = (script) => (script === 'push-once' ? 'unreachable' : undefined)
      const push = () => store.operations.push({ jobs: [...jobs, newJob({ after: [jobs[0]?.id ?? ''] })], whole })
      if (whole) await assert.rejects(push(), { code: 'StoreUnavailable' })
      else assert.equal((await push())[1]?.status, 'failed')
      faulty.fault = () => undefined
      assert.deepEqual((await push())[1], { status: 'replaced', id: first.id })
    })
  }

  test('a firing meets the key of a job whose client died', async (t) => {
    const { store, other, faulty, clock } = await scene(t)
    await dies(faulty, 'decide', () =>
      store.operations.push({ jobs: [newJob({ key: 'k' }), newJob({ queue: 'r' })], whole: true }),
    )
    const times = { when: 'every 1h', tz: 'UTC', missed: 'once' as const, jitter: 0, from: null, until: null }
    const job = { queue: 'q', priority: 4, key: 'k', group: null, cost: 1, attempts: null, timeout: null, data: NULL }
    const schedule = { name: 's', version: '1', ...times, paused: false, again: false, job }
    assert.deepEqual(await other.operations.declare({ schedules: [schedule] }), ['created'])
    const fired = newJob({ key: 'k' })
    const firing = { name: 's', version: '1', expected: clock.now, next: clock.now + 1, jobs: [fired] }
    const [outcome] = await other.operations.fire({ firings: [firing] })
    assert.deepEqual(outcome, { status: 'fired', jobs: [{ status: 'pushed', id: fired.id }] })
    assert.deepEqual(await statesOf(other, [fired]), ['waiting'])
  })

  test('what waited for an unknown job, and is gone, is awaited no more', async (t) => {
    const { other, clock, prefix } = await scene(t)
    const [gone, kept] = [1, 2].map(() => recordOf({ state: 'blocked', after: [newJob().id] }))
    assert.ok(gone && kept)
    assert.deepEqual(await other.operations.restore({ records: [gone, kept] }), ['restored', 'restored'])
    await other.operations.remove({ ids: [gone.id] })
    const client = connect(url)
    t.after(() => client.disconnect())
    const awaited = () => client.zcard(`{${prefix}}:awaited`)
    await other.operations.sweep({ limit: 100 })
    assert.equal(await awaited(), 2)
    clock.now += 3_600_000
    await other.operations.sweep({ limit: 100 })
    assert.equal(await awaited(), 1)
    await other.operations.restore({
      records: [recordOf({ id: kept.after?.[0] ?? '', state: 'done', finishedAt: clock.now })],
    })
    assert.deepEqual([await awaited(), await statesOf(other, [kept])], [0, ['waiting']])
  })

  test('a claim that is repeated too late gives what its first try got', async (t) => {
    const { other, prefix } = await scene(t)
    await other.operations.push({ jobs: [newJob()] })
    const partition = new Partition(prefix, 'q', 0)
    const client = connect(url)
    t.after(() => client.disconnect())
    const { keys, text } = scriptOf('claim')
    const call = (latest: number, again: 0 | 1) => {
      const head = pack([null, 'bells', 'origin', 'q', 'q', 1, 60_000, 'w', 'call', latest, 0, 1, 1])
      return client.callBuffer('eval', text, keys.length, ...keys.map((key) => partition.key(key)), head, again)
    }
    const first = (await call(Number.MAX_SAFE_INTEGER, 0)) as unknown[]
    const again = (await call(1, 1)) as unknown[]
    assert.deepEqual(again[6], first[6])
    assert.deepEqual(((await call(1, 0)) as unknown[])[3], 2)
  })
})
