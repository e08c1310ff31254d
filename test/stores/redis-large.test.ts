/** Scripts that meet many large jobs: each call reads some megabytes, and the rest is left to the next. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import type { Swept } from '../../src/values/operations/swept.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { ERROR, newJobs } from '../support/jobs.ts'
import { faultyClient } from './redis-faults.ts'
import { freshPrefix, removePrefix } from './redis-fixture.ts'

const url = serverUrl('redis') ?? ''
const COUNT = 20
/** A call takes four of them to eight. */
const large = (more: Parameters<typeof newJobs>[1] = {}) =>
  newJobs(COUNT, { data: { encoding: 'bytes', body: new Uint8Array(1_000_000) }, ...more })

const idsOf = (jobs: readonly { id: string }[]): string[] => jobs.map(({ id }) => id)

describe('many large jobs', { skip: missingReason('redis') }, () => {
  const onStore = (title: string, script: string, check: (store: Store, clock: { now: number }) => Promise<void>) =>
    test(title, async () => {
      const faulty = faultyClient(url)
      const prefix = freshPrefix()
      const clock = { now: Date.now() }
      let calls = 0
      faulty.before = (name) => {
        if (name === script) calls++
      }
      const store = await open(url, { client: faulty.client, prefix, clock: () => clock.now })
      try {
        await check(store, clock)
        assert.ok(calls >= 3, `${calls} calls`)
      } finally {
        await store.close()
        faulty.disconnect()
        await removePrefix(url, prefix)
      }
    })

  const swept = async (store: Store, of: (swept: Swept) => number) => {
    let sum = 0
    for (let more = true; more; ) {
      const one = await store.operations.sweep({ limit: 1000 })
      sum += of(one)
      more = one.more
    }
    return sum
  }
  const held = async (store: Store) => {
    const { jobs } = await claim(store, { lease: 10 })
    assert.equal(jobs.length, COUNT)
    return jobs.map((job) => ({ ...job, claim: job }))
  }
  const all = (outcome: string) => Array(COUNT).fill(outcome)

  onStore('lost leases', 'sweep', async (store, clock) => {
    await store.operations.push({ jobs: large() })
    await held(store)
    clock.now += 10
    assert.equal(await swept(store, ({ lost }) => lost.length), COUNT)
  })

  onStore('due jobs', 'sweep', async (store, clock) => {
    await store.operations.push({ jobs: large({ delay: 10 }) })
    clock.now += 10
    assert.equal(await swept(store, ({ promoted }) => promoted), COUNT)
  })

  onStore('completions of jobs with keys', 'complete', async (store) => {
    for (const [i, job] of large().entries()) await store.operations.push({ jobs: [{ ...job, key: `k${i}` }] })
    const jobs = await held(store)
    const completions = jobs.map((job) => ({ ...job, result: null }))
    assert.deepEqual(await store.operations.complete({ queue: 'q', items: completions }), all('ok'))
    assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.counts.done, COUNT)
  })

  onStore('failures', 'fail', async (store) => {
    await store.operations.push({ jobs: large() })
    const failures = (await held(store)).map((job) => ({ ...job, error: ERROR, delay: null }))
    assert.deepEqual(await store.operations.fail({ queue: 'q', items: failures }), all('dead'))
  })

  onStore('releases', 'release', async (store) => {
    await store.operations.push({ jobs: large() })
    assert.deepEqual(await store.operations.release({ queue: 'q', items: await held(store) }), all('ok'))
    assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.counts.waiting, COUNT)
  })

  onStore('cancels', 'cancel', async (store) => {
    const jobs = large()
    await store.operations.push({ jobs })
    assert.deepEqual(await store.operations.cancel({ ids: idsOf(jobs) }), all('cancelled'))
  })

  onStore('look-ups', 'find', async (store) => {
    const jobs = large()
    await store.operations.push({ jobs })
    const unknown = newJobs(2)
    const asked = [...idsOf(unknown), ...idsOf(jobs)]
    const found = await store.operations.find({ ids: asked })
    assert.deepEqual(
      found.map((job) => job?.id ?? null),
      [null, null, ...idsOf(jobs)],
    )
  })

  onStore('lists', 'list', async (store) => {
    const jobs = large()
    await store.operations.push({ jobs })
    const { jobs: listed } = await store.operations.list({ queue: 'q', state: 'waiting', limit: 100 })
    assert.deepEqual(idsOf(listed).toSorted(), idsOf(jobs).toSorted())
    const { jobs: first, next } = await store.operations.list({ queue: 'q', state: 'waiting', limit: 7 })
    const rest = await store.operations.list({ queue: 'q', state: 'waiting', limit: 100, after: next ?? '' })
    assert.deepEqual(idsOf([...first, ...rest.jobs]), idsOf(listed))
  })

  onStore('requeues', 'requeue', async (store, clock) => {
    await store.operations.push({ jobs: large() })
    const failures = (await held(store)).map((job) => ({ ...job, error: ERROR, delay: null }))
    await store.operations.fail({ queue: 'q', items: failures })
    assert.equal((await store.operations.requeue({ ids: idsOf(failures) })).requeued, COUNT)
    // Jobs that are due and dead in the millisecond of a requeue count as those that it brought back itself.
    clock.now += 1
    const again = (await held(store)).map((job) => ({ ...job, error: ERROR, delay: null }))
    await store.operations.fail({ queue: 'q', items: again })
    assert.equal((await store.operations.requeue({ queue: 'q', limit: 100 })).requeued, COUNT)
  })
})
