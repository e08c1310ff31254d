/** Parts of a store that cannot be reached, and answers that get lost: the other parts go on, and nothing that was given is dropped. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { indexOf } from '../../src/stores/redis/partition.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, NULL, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { type FaultyClient, faultyClient } from './redis-faults.ts'
import { freshPrefix, removePrefix } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
const PARTITIONS = 4

const unavailable = (error: unknown): boolean => isMillpondError(error, 'StoreUnavailable')
const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map(({ id }) => id).toSorted()

describe('redis store, parts of which cannot be reached', { skip: missingReason('redis') }, () => {
  const onStore = (
    title: string,
    check: (store: Store, faulty: FaultyClient, clock: { now: number }) => Promise<void>,
    { partitions = PARTITIONS, timeout = 400 } = {},
  ) =>
    test(title, async () => {
      const faulty = faultyClient(url)
      const prefix = freshPrefix()
      const clock = { now: Date.now() }
      const options = { client: faulty.client, prefix, partitions, timeout, clock: () => clock.now }
      const store = await open(url, options)
      try {
        await check(store, faulty, clock)
      } finally {
        faulty.fault = () => undefined
        await store.close()
        faulty.disconnect()
        await removePrefix(url, prefix)
      }
    })

  onStore(
    'a claim gives what the reachable partitions gave, and is rejected only where they gave nothing',
    async (store, faulty) => {
      const jobs = newJobs(40)
      await store.operations.push({ jobs })
      faulty.fault = (_, partition) => (partition === 1 ? 'unreachable' : undefined)
      const got: ClaimedJob[] = []
      // Each partition is the first to be asked in one of them.
      for (let round = 0; round < PARTITIONS; round++) {
        const { jobs: some, now } = await claim(store, { limit: 8 })
        assert.ok(some.length > 0 && now > 0)
        got.push(...some)
      }
      while (got.length < 40) {
        const some = (await claim(store).catch((error: unknown) => assert.ok(unavailable(error))))?.jobs ?? []
        if (some.length === 0) break
        got.push(...some)
      }
      // One that is smaller than the number of partitions looks before it asks.
      for (const limit of [100, 1]) {
        await until(async () => {
          const found = await claim(store, { limit }).catch((error: unknown) => assert.ok(unavailable(error)))
          assert.equal(found?.jobs.length ?? 0, 0)
          return found === undefined
        }, 'a claim tells of the trouble')
      }
      const [stats] = await store.operations.stats({})
      assert.equal(stats?.counts.running, got.length, 'whatever runs was handed out')
      faulty.fault = () => undefined
      await until(async () => {
        got.push(...(await claim(store)).jobs)
        return got.length === 40
      }, 'the partition is asked again')
      assert.deepEqual(idsOf(got), idsOf(jobs))
    },
  )

  onStore(
    'a small claim finds the one job although another partition does not tell whether it has any',
    async (store, faulty) => {
      for (let part = 0; part < PARTITIONS; part++) {
        const [job] = newJobs(1)
        assert.ok(job)
        await store.operations.push({ jobs: [job] })
        for (const away of [0, 1, 2, 3]) {
          faulty.fault = (script, partition) => (script === 'claim' && partition === away ? 'unreachable' : undefined)
          await until(async () => {
            const got = await claim(store, { limit: 1 }).catch((error: unknown) => assert.ok(unavailable(error)))
            if (got === undefined || got.jobs.length === 0) return indexOf(PARTITIONS, job) === away
            assert.deepEqual(idsOf(got.jobs), [job.id])
            return (await store.operations.release({ queue: 'q', items: got.jobs }))[0] === 'ok'
          }, 'it is found, if it is elsewhere')
        }
        faulty.fault = () => undefined
        await until(async () => (await claim(store, { limit: 1 })).jobs[0]?.id === job.id, 'all are asked again')
        assert.equal((await store.operations.stats({}))[0]?.counts.running, part + 1)
      }
    },
  )

  onStore(
    'of large jobs, those of the first call are given although the second got no answer',
    async (store, faulty) => {
      for (let i = 0; i < 4; i++)
        await store.operations.push({
          jobs: newJobs(5, { data: { encoding: 'bytes', body: new Uint8Array(700_000) } }),
        })
      let calls = 0
      faulty.fault = (script) => (script === 'claim' && ++calls > 1 ? 'unreachable' : undefined)
      const { jobs } = await claim(store, { limit: 20 })
      assert.ok(jobs.length > 0 && jobs.length < 20, `${jobs.length}`)
      assert.equal((await store.operations.stats({}))[0]?.counts.running, jobs.length)
    },
    { partitions: 1, timeout: 800 },
  )

  onStore(
    'no answer holds much more than four megabytes, however many jobs are claimed',
    async (store, faulty) => {
      const large = (count: number) => newJobs(count, { data: { encoding: 'bytes', body: new Uint8Array(500_000) } })
      for (let i = 0; i < 4; i++) await store.operations.push({ jobs: large(10) })
      // Cancelled ones are passed, which reads them as well.
      const holes = large(10)
      await store.operations.push({ jobs: holes })
      await store.operations.cancel({ ids: idsOf(holes.slice(0, 5)) })
      const { jobs } = await claim(store, { limit: 30 })
      assert.equal(jobs.length, 30)
      await store.operations.release({ queue: 'q', items: jobs })
      assert.equal((await claim(store, { limit: 100 })).jobs.length, 45)
      assert.ok(Math.max(...faulty.claims) < 6_000_000, `${faulty.claims}`)
    },
    { partitions: 1, timeout: 5000 },
  )

  onStore(
    'a sweep reaches the others, and tells of the trouble when there is nothing else to tell',
    async (store, faulty, clock) => {
      await store.operations.push({ jobs: newJobs(40, { delay: 10 }) })
      await store.operations.push({ jobs: newJobs(40) })
      const { jobs } = await claim(store, { lease: 10 })
      assert.equal(jobs.length, 40)
      clock.now += 10
      faulty.fault = (script, partition) => (script === 'sweep' && partition === 0 ? 'unreachable' : undefined)
      const { lost, promoted } = await store.operations.sweep({ limit: 1000 })
      assert.ok(lost.length > 0 && lost.length < 40 && promoted > 0 && promoted < 40, `${lost.length} ${promoted}`)
      // Whoever was handed a partition has a second for it.
      clock.now += 1000
      await until(async () => {
        clock.now += 1000
        return (
          (await store.operations.sweep({ limit: 1000 }).catch((error: unknown) => assert.ok(unavailable(error)))) ===
          undefined
        )
      }, 'a sweep tells of the trouble')
      faulty.fault = () => undefined
      const told = [lost.length, promoted]
      await until(async () => {
        clock.now += 1000
        const rest = await store.operations.sweep({ limit: 1000 })
        told[0] = (told[0] ?? 0) + rest.lost.length
        told[1] = (told[1] ?? 0) + rest.promoted
        return told.join() === '40,40'
      }, 'all of it is swept')
    },
  )

  onStore('find and cancel answer for jobs that are known where they can be reached', async (store, faulty) => {
    const jobs = newJobs(40)
    await store.operations.push({ jobs })
    faulty.fault = (_, partition) => (partition === 2 ? 'unreachable' : undefined)
    const reachable: string[] = []
    for (const { id } of jobs) {
      const [found] = await store.operations.find({ ids: [id] }).catch((error: unknown) => {
        assert.ok(unavailable(error))
        return []
      })
      if (found) reachable.push(id)
      if (reachable.length === 5) break
    }
    assert.equal(reachable.length, 5)
    assert.ok((await store.operations.find({ ids: reachable })).every((record) => record?.state === 'waiting'))
    assert.deepEqual(
      await store.operations.cancel({ ids: reachable }),
      reachable.map(() => 'cancelled'),
    )
    // Of an id that nobody knows who answers, nothing can be said.
    await assert.rejects(store.operations.find({ ids: [newJob().id] }), unavailable)
    await assert.rejects(store.operations.cancel({ ids: [...reachable, newJob().id] }), unavailable)
  })

  for (const [title, tell] of [
    [
      'complete',
      (store: Store, jobs: readonly ClaimedJob[]) =>
        store.operations.complete({ queue: 'q', items: jobs.map((claim) => ({ ...claim, claim, result: NULL })) }),
    ],
    [
      'fail',
      (store: Store, jobs: readonly ClaimedJob[]) =>
        store.operations.fail({
          queue: 'q',
          items: jobs.map((claim) => ({ ...claim, claim, error: ERROR, delay: null })),
        }),
    ],
    [
      'release',
      (store: Store, jobs: readonly ClaimedJob[]) =>
        store.operations.release({ queue: 'q', items: jobs.map((claim) => ({ ...claim, claim })) }),
    ],
  ] as const) {
    onStore(
      `${title}: told again after a part of it got no answer, no claim of the other parts is stale`,
      async (store, faulty) => {
        await store.operations.push({ jobs: newJobs(40) })
        const { jobs } = await claim(store)
        assert.equal(jobs.length, 40)
        faulty.fault = (script, partition) => (script === title && partition === 3 ? 'unreachable' : undefined)
        await assert.rejects(tell(store, jobs), unavailable)
        faulty.fault = () => undefined
        const outcomes = await tell(store, jobs)
        assert.deepEqual(new Set(outcomes), new Set([title === 'fail' ? 'dead' : 'ok']))
        assert.equal((await store.operations.stats({}))[0]?.counts.running, 0)
      },
    )
  }

  for (const fault of ['lost', 'unreachable'] as const) {
    onStore(`a push whose first try is ${fault} answers as if it had been the only one`, async (store, faulty) => {
      const [known] = newJobs(1)
      const [twin] = newJobs(1, { key: 'k' })
      assert.ok(known && twin)
      await store.operations.push({ jobs: [known, twin] })
      const jobs = newJobs(20)
      const faults = new Set<number>()
      faulty.fault = (script, partition) => {
        if (script !== 'push' || faults.has(partition)) return undefined
        faults.add(partition)
        return fault
      }
      const doubled = newJob()
      const outcomes = await store.operations.push({ jobs: [...jobs, doubled, doubled, newJob({ key: 'k' })] })
      assert.equal(faults.size, PARTITIONS)
      assert.deepEqual(outcomes, [
        ...jobs.map(({ id }) => ({ status: 'pushed', id })),
        { status: 'pushed', id: doubled.id },
        { status: 'existing', id: doubled.id },
        { status: 'existing', id: twin.id },
      ])
      assert.equal((await store.operations.stats({}))[0]?.counts.waiting, 23)
      // Without a lost answer, a repeated push is told so.
      assert.deepEqual(await store.operations.push({ jobs: [known] }), [{ status: 'existing', id: known.id }])
    })
  }

  onStore(
    'a push over several partitions answers per job: only those of the unreachable one fail',
    async (store, faulty) => {
      await store.operations.push({ jobs: newJobs(40) })
      faulty.fault = (script, partition) => (script === 'push' && partition === 2 ? 'unreachable' : undefined)
      const jobs = newJobs(40)
      const outcomes = await store.operations.push({ jobs })
      const failed = outcomes.filter(({ status }) => status === 'failed')
      assert.ok(failed.length > 0 && failed.length < 40, `${failed.length}`)
      assert.ok(failed.every(({ error }) => unavailable(error)))
      assert.deepEqual(
        outcomes.map(({ id }) => id),
        jobs.map(({ id }) => id),
      )
      assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['failed', 'pushed']))
      assert.equal((await store.operations.stats({}))[0]?.counts.waiting, 80 - failed.length)
      // Where all of them fail, the push does.
      faulty.fault = (script) => (script === 'push' ? 'unreachable' : undefined)
      await assert.rejects(store.operations.push({ jobs: newJobs(40) }), unavailable)
      faulty.fault = () => undefined
      const again = await store.operations.push({ jobs })
      assert.equal(again.filter(({ status }) => status === 'pushed').length, failed.length)
    },
  )

  for (const [fault, states] of [
    ['lost', ['waiting', 'waiting', 'blocked']],
    ['unreachable', [undefined, undefined, undefined]],
  ] as const) {
    onStore(
      `a graph whose decision is ${fault} starts as a whole, or not at all`,
      async (store, faulty, clock) => {
        const parents = [newJob({ queue: 'p' }), newJob({ queue: 'q' })]
        const jobs = [...parents, newJob({ queue: 'c', after: parents.map(({ id }) => id) })]
        faulty.fault = (script, _, key) => {
          if (script === 'decide') return fault
          // The partition that decides does not answer from then on.
          return script === 'decided' && key.includes(':p:') ? 'unreachable' : undefined
        }
        await assert.rejects(store.operations.push({ jobs, whole: true }), unavailable)
        faulty.fault = () => undefined
        clock.now += DEFAULTS.graph.decide + 1
        while ((await store.operations.sweep({ limit: 100 })).more);
        const found = await store.operations.find({ ids: jobs.map(({ id }) => id) })
        assert.deepEqual(
          found.map((record) => record?.state),
          states,
        )
      },
      { partitions: 1 },
    )
  }
})
