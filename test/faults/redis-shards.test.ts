/** A queue in several partitions, one of which lies on a server that has fallen silent: the others go on as if it were not there. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { indexOf } from '../../src/stores/redis/partition.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { type FaultyClient, faultyClient } from '../stores/redis-faults.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const url = serverUrl('redis') ?? ''
const PARTITIONS = 6
const SILENT = 1
/** Longer than a test may take: whatever waits for the silent one fails. */
const options = { partitions: PARTITIONS, timeout: 60_000 }

const silence = (faulty: FaultyClient, scripts?: readonly string[]): void => {
  faulty.fault = (script, partition) =>
    partition === SILENT && (scripts === undefined || scripts.includes(script)) ? 'silent' : undefined
}
const isElsewhere = (job: { id: string }): boolean => indexOf(PARTITIONS, { ...job, key: null, group: null }) !== SILENT

function scene(t: TestContext) {
  const faulty = faultyClient(url)
  const prefix = freshPrefix()
  t.after(async () => {
    faulty.disconnect()
    await removePrefix(url, prefix)
  })
  return { faulty, prefix }
}

describe('one silent partition of several', { skip: missingReason('redis') }, () => {
  test('claims give what the others have, and come back to it when it answers', { timeout: 20_000 }, async (t) => {
    const { faulty, prefix } = scene(t)
    const store = await open(url, { ...options, prefix, client: faulty.client })
    t.after(() => store.close())
    const jobs = newJobs(120)
    await store.operations.push({ jobs })
    const { promise, resolve } = Promise.withResolvers<void>()
    faulty.silence = promise
    silence(faulty)
    const got = new Set<string>()
    const others = jobs.filter(isElsewhere)
    for (let calls = 0; got.size < others.length; calls++) {
      assert.ok(calls < 60, 'claims come back empty')
      const { jobs: some } = await claim(store, { limit: 10 }).catch(() => ({ jobs: [] }))
      for (const { id } of some) got.add(id)
    }
    assert.deepEqual([...got].toSorted(), others.map(({ id }) => id).toSorted())
    faulty.fault = () => undefined
    resolve()
    await until(async () => {
      const { jobs: some } = await claim(store).catch(() => ({ jobs: [] }))
      for (const { id, attempt } of some) {
        assert.equal(attempt, 1, 'what a claim got that nobody waited for was given back')
        got.add(id)
      }
      return got.size === jobs.length
    }, 'it is asked again')
  })

  test('a worker does all jobs of the others, and the store knows', { timeout: 20_000 }, async (t) => {
    const { faulty, prefix } = scene(t)
    const pond = await Millpond.open(url, { ...options, prefix, client: faulty.client })
    const observer = await open(url, { prefix })
    t.after(async () => {
      faulty.fault = () => undefined
      await Promise.all([pond.close({ timeout: 100 }), observer.close()])
    })
    pond.on('error', () => undefined)
    const jobs = newJobs(3000)
    await pond.queue('q').push(0)
    await observer.operations.push({ jobs })
    // Endings alone: what was claimed there stays with the worker.
    silence(faulty, ['complete', 'extend'])
    pond.queue('q').work(() => undefined, { concurrency: 10 })
    await until(async () => {
      const found = await observer.operations.find({ ids: jobs.filter(isElsewhere).map(({ id }) => id) })
      return found.every((job) => job?.state === 'done')
    }, 'all others are done')
  })

  test('sweeps bring what is due in the others', { timeout: 20_000 }, async (t) => {
    const { faulty, prefix } = scene(t)
    const clock = { now: Date.now() }
    const store = await open(url, { ...options, prefix, client: faulty.client, clock: () => clock.now })
    t.after(async () => {
      faulty.fault = () => undefined
      await store.close()
    })
    const jobs = newJobs(120, { delay: 10 })
    await store.operations.push({ jobs })
    let bucket = ''
    faulty.fault = (_, partition, key) => {
      if (partition === SILENT) bucket = key.slice(0, key.indexOf('}'))
      return undefined
    }
    await store.operations.find({ ids: jobs.map(({ id }) => id) })
    for (const script of ['due', 'sweep']) {
      faulty.fault = (name, partition, key) =>
        name === script && (partition === SILENT || key.startsWith(bucket)) ? 'silent' : undefined
      clock.now += 1000
      const fresh = newJobs(60, { delay: 10 })
      await store.operations.push({ jobs: fresh })
      clock.now += 10
      await store.operations.sweep({ limit: 1000 })
      const found = await store.operations.find({ ids: [...jobs, ...fresh].filter(isElsewhere).map(({ id }) => id) })
      assert.deepEqual(new Set(found.map((job) => job?.state)), new Set(['waiting']))
    }
  })

  test('what a sweep does too late to tell is told by a later one', { timeout: 20_000 }, async (t) => {
    const { faulty, prefix } = scene(t)
    const clock = { now: Date.now() }
    const store = await open(url, { ...options, prefix, client: faulty.client, clock: () => clock.now })
    t.after(() => store.close())
    await store.operations.push({ jobs: newJobs(60) })
    assert.equal((await claim(store, { lease: 10 })).jobs.length, 60)
    clock.now += 10
    const { promise: late, resolve } = Promise.withResolvers<void>()
    let held = 0
    faulty.before = (script) => (script === 'sweep' && held++ === 0 ? late : undefined)
    let lost = (await store.operations.sweep({ limit: 1000 })).lost.length
    assert.ok(lost > 0 && lost < 60, `${lost}`)
    resolve()
    await until(async () => {
      lost += (await store.operations.sweep({ limit: 1000 })).lost.length
      return lost === 60
    }, 'all are told')
    assert.equal((await claim(store)).jobs.length, 60)
  })
})
