/** Limits and groups of queues that are split into partitions, on one server and on a cluster. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { groupIndex } from '../../src/stores/redis/partition.ts'
import type { ClaimedJob, NewJob } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { openRedis } from './redis-fixture.ts'

const PARTITIONS = 4
const GROUPS = Array.from({ length: 20 }, (_, i) => `g${String(i).padStart(2, '0')}`)

const grouped = (each: number): NewJob[] =>
  GROUPS.flatMap((group) => Array.from({ length: each }, () => newJob({ group })))

const countByGroup = (jobs: readonly ClaimedJob[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(jobs, ({ group }) => group ?? '')].map(([group, own]) => [group, own.length]))

const isInvalid = (error: unknown): boolean => isMillpondError(error, 'InvalidOption')

async function completeAll(store: Store, jobs: readonly ClaimedJob[]): Promise<void> {
  const outcomes = await store.operations.complete({
    queue: 'q',
    items: jobs.map((job) => ({ id: job.id, fence: job.fence, claim: job, result: null })),
  })
  assert.ok(outcomes.every((outcome) => outcome === 'ok'))
}

for (const server of ['redis', 'redis-cluster'] as const) {
  const url = serverUrl(server) ?? ''

  describe(`limits over partitions on ${server}`, { skip: missingReason(server) }, () => {
    const onStore = (title: string, check: (store: Store, clock: { now: number }) => Promise<void>) =>
      test(title, async () => {
        const clock = { now: Date.now() }
        const { store, dispose } = await openRedis(url, { partitions: PARTITIONS, clock: () => clock.now })
        try {
          await check(store, clock)
        } finally {
          await dispose()
        }
      })
    const statsOf = async (store: Store) => (await store.operations.stats({ queue: 'q' }))[0]

    onStore('as many jobs run as may, whatever the claims', async (store) => {
      await store.operations.configure({ queue: 'q', running: 10 })
      await store.operations.push({ jobs: newJobs(100) })
      const running: ClaimedJob[] = []
      for (let done = 0; done < 100; ) {
        for (const limit of [1, 3, 2, 50]) running.push(...(await claim(store, { limit })).jobs)
        // Towards the end some partitions have no jobs left for their share.
        assert.ok(running.length <= 10 && (done > 40 || running.length === 10), String(running.length))
        const ended = running.splice(0, 1 + (done % 4))
        await completeAll(store, ended)
        done += ended.length
      }
      const limits = (await statsOf(store))?.limits
      assert.deepEqual([limits?.running, limits?.rate, limits?.grouped], [10, null, false])
    })

    onStore('the partitions together keep to a rate, and tell it as it was set', async (store, clock) => {
      const rate = { count: 40, per: 1000, burst: 6 }
      await store.operations.configure({ queue: 'q', rate })
      await store.operations.push({ jobs: newJobs(500) })
      let started = 0
      for (let ms = 0; ms <= 10_000; ms += 100) {
        const { jobs, retryAfter } = await claim(store)
        started += jobs.length
        assert.ok(started <= 6 + (40 * ms) / 1000, `${started} after ${ms} ms`)
        assert.ok(retryAfter !== null && retryAfter <= 100)
        await completeAll(store, jobs)
        clock.now += 100
      }
      assert.ok(started >= 400, String(started))
      assert.deepEqual((await statsOf(store))?.limits?.rate, rate)
    })

    onStore('a share of a limit is 1 at least', async (store) => {
      await assert.rejects(store.operations.configure({ queue: 'q', running: PARTITIONS - 1 }), isInvalid)
      await assert.rejects(
        store.operations.configure({ queue: 'q', rate: { count: 20, per: 1000, burst: null } }),
        isInvalid,
      )
      await assert.rejects(
        store.operations.configure({ queue: 'q', rate: { count: 20, per: 1000, burst: 3 } }),
        isInvalid,
      )
      const few = { running: PARTITIONS - 1, rate: null, weight: 1 }
      await assert.rejects(async () => store.operations.limitGroup({ queue: 'q', group: '', limits: few }), isInvalid)
      await store.operations.limitGroup({ queue: 'q', group: 'g', limits: few })
      await store.operations.configure({ queue: 'q', groupRunning: 1, groupRate: { count: 1, per: 1000, burst: 1 } })
      await store.operations.configure({ queue: 'q', running: null, rate: null })
    })

    onStore('limits of groups hold, of jobs that wait already, too', async (store) => {
      await store.operations.push({ jobs: grouped(5) })
      await store.operations.configure({ queue: 'q', groupRunning: 2 })
      await store.operations.limitGroup({ queue: 'q', group: 'g07', limits: { running: 4, rate: null, weight: 1 } })
      const { jobs } = await claim(store)
      assert.deepEqual(countByGroup(jobs), { ...Object.fromEntries(GROUPS.map((group) => [group, 2])), g07: 4 })
      assert.equal((await claim(store)).jobs.length, 0)
      await completeAll(
        store,
        jobs.filter(({ group }) => group === 'g03'),
      )
      assert.deepEqual(countByGroup((await claim(store)).jobs), { g03: 2 })
      assert.equal((await statsOf(store))?.groupsAtLimit, GROUPS.length)
    })

    onStore('a queue is grouped in all its partitions as soon as one group is limited', async (store) => {
      await store.operations.limitGroup({ queue: 'q', group: 'g00', limits: { running: 1, rate: null, weight: 1 } })
      await store.operations.push({ jobs: grouped(3) })
      const started: ClaimedJob[] = []
      for (let i = 0; i < 2 * PARTITIONS; i++) started.push(...(await claim(store, { limit: 1 })).jobs)
      const inPartition = Map.groupBy(GROUPS, (group) => groupIndex(PARTITIONS, group))
      const turns = [...inPartition.values()].map((groups) => Math.min(2, groups.length))
      assert.equal(
        new Set(started.map(({ group }) => group)).size,
        turns.reduce((sum, count) => sum + count),
      )
      assert.equal((await statsOf(store))?.limits?.grouped, true)
    })

    onStore('groups are listed by name, the jobs without one first and summed', async (store) => {
      const rate = { count: 100, per: 1000, burst: 10 }
      await store.operations.limitGroup({ queue: 'q', group: '', limits: { running: 6, rate, weight: 3 } })
      await store.operations.limitGroup({ queue: 'q', group: 'ü', limits: { running: 7, rate, weight: 2 } })
      await store.operations.push({ jobs: [...grouped(2), ...newJobs(40)] })
      await claim(store, { limit: 1000 })
      const listed = (await store.operations.groups({ queue: 'q', limit: 1000 })) ?? []
      assert.deepEqual(
        listed.map(({ group }) => group),
        ['', ...GROUPS, 'ü'],
      )
      assert.deepEqual(listed[0], {
        group: '',
        limits: { running: 6, rate, weight: 3 },
        waiting: 34,
        running: 6,
        nextStart: null,
      })
      assert.deepEqual(listed.at(-1)?.limits, { running: 7, rate, weight: 2 })
      const paged: typeof listed = []
      for (let more = true; more; ) {
        const after = paged.at(-1)?.group
        const page =
          (await store.operations.groups({ queue: 'q', limit: 5, ...(after === undefined ? {} : { after }) })) ?? []
        paged.push(...page)
        more = page.length === 5
      }
      assert.deepEqual(paged, listed)
      for (const name of ['', 'g11', 'ü']) {
        const one = await store.operations.groups({ queue: 'q', limit: 9, group: name })
        assert.deepEqual(
          one,
          listed.filter(({ group }) => group === name),
        )
      }
      await store.operations.limitGroup({ queue: 'q', group: '', limits: null })
      assert.equal((await store.operations.groups({ queue: 'q', limit: 1, group: '' }))?.[0]?.limits, null)
    })

    onStore('a pause of a group holds no other group; that of a queue holds all partitions', async (store, clock) => {
      await store.operations.configure({ queue: 'q', grouped: true })
      await store.operations.push({ jobs: [...grouped(3), newJob()] })
      const { jobs } = await claim(store)
      const [held] = jobs
      const alone = jobs.find(({ group }) => group === null)
      assert.ok(held?.group && alone !== undefined)
      const holds = jobs.filter((job) => job !== held && job !== alone).map((job) => ({ ...job, claim: job }))
      assert.deepEqual(await store.operations.release({ queue: 'q', items: [{ ...held, claim: held, pause: 500 }] }), [
        'ok',
      ])
      await store.operations.release({ queue: 'q', items: holds })
      const others = (await claim(store)).jobs
      assert.deepEqual(Object.keys(countByGroup(others)).length, GROUPS.length - 1)
      assert.ok(!others.some(({ group }) => group === held.group))
      await store.operations.release({ queue: 'q', items: others })
      assert.deepEqual(await store.operations.release({ queue: 'q', items: [{ ...alone, pause: 700 }] }), ['ok'])
      const paused = await claim(store)
      assert.deepEqual([paused.jobs.length, paused.retryAfter], [0, 700])
      clock.now += 700
      assert.equal((await claim(store)).jobs.length, 3 * GROUPS.length + 1)
    })

    onStore('a pause of a queue without groups holds all partitions', async (store, clock) => {
      await store.operations.push({ jobs: newJobs(30) })
      const [job] = (await claim(store, { limit: 1 })).jobs
      assert.ok(job !== undefined)
      assert.deepEqual(await store.operations.release({ queue: 'q', items: [{ ...job, pause: 500 }] }), ['ok'])
      assert.equal((await statsOf(store))?.nextStart, 500)
      const paused = await claim(store)
      assert.deepEqual([paused.jobs.length, paused.retryAfter], [0, 500])
      clock.now += 500
      assert.equal((await claim(store)).jobs.length, 30)
    })

    onStore('a job with a key and a group fails alone: they may belong to two partitions', async (store) => {
      const jobs = [newJob({ key: 'k' }), newJob({ key: 'k2', group: 'g' }), newJob({ group: 'g' }), newJob()]
      const outcomes = await store.operations.push({ jobs })
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ['pushed', 'failed', 'pushed', 'pushed'],
      )
      assert.ok(isMillpondError(outcomes[1]?.error, 'NotSupported'))
      await assert.rejects(store.operations.push({ jobs: [newJob({ key: 'k2', group: 'g' })] }), (error) =>
        isMillpondError(error, 'NotSupported'),
      )
    })
  })
}
