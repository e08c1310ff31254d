/** What is particular to the memory store: how it is opened, and where it is bounded. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Bell } from '../../src/store.ts'
import { open } from '../../src/stores/memory/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { claim } from '../conformance/suite.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'

test('opens with "memory:", as text or URL, and with nothing else', async () => {
  for (const url of ['memory:', 'memory://', new URL('memory:')]) {
    const store = await open(url, {})
    assert.equal(store.name, 'memory')
    const lacking = Object.entries(store.capabilities).flatMap(([name, has]) => (has ? [] : [name]))
    assert.deepEqual(lacking, ['durable', 'shared', 'pipelined', 'transactions', 'replicas', 'spill'])
  }
  for (const url of [
    'memory:jobs',
    'memory:/tmp/jobs',
    'memory://host',
    'memory:?size=5',
    'memory:?clock=1',
    'sqlite:x',
    'memory',
  ]) {
    await assert.rejects(open(url, {}), (error) => isMillpondError(error, 'InvalidOption'), url)
  }
})

test('holds 100,000 jobs per queue unless told otherwise', async () => {
  const store = await open('memory:', {})
  for (let i = 0; i < 200; i++) await store.operations.push({ jobs: newJobs(500, { delay: i % 2 }) })
  const [outcome, other] = await store.operations.push({ jobs: [newJob(), newJob({ queue: 'other' })] })
  assert.equal(outcome?.status, 'full')
  assert.equal(other?.status, 'pushed')
  const [stats] = await store.operations.stats({ queue: 'q' })
  assert.equal(stats?.capacity, 100_000)
  await store.operations.configure({ queue: 'q', capacity: null })
  assert.equal((await store.operations.push({ jobs: [newJob()] }))[0]?.status, 'pushed')
})

test('keeps the latest 10,000 finished jobs of each state', async () => {
  const store = await open('memory:', {})
  const dead = newJob()
  await store.operations.push({ jobs: [dead] })
  const [claimed] = (await claim(store)).jobs
  assert.ok(claimed)
  await store.operations.fail({ queue: 'q', items: [{ ...claimed, error: ERROR, delay: null }] })

  const jobs = newJobs(10_500)
  for (let i = 0; i < jobs.length; i += 500) {
    await store.operations.push({ jobs: jobs.slice(i, i + 500) })
    const claimed = (await claim(store)).jobs
    await store.operations.complete({
      queue: 'q',
      items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
    })
  }
  const ids = [0, 499, 500, 10_499].map((i) => jobs[i]?.id ?? '')
  const found = await store.operations.find({ ids: [...ids, dead.id] })
  assert.deepEqual(
    found.map((record) => record?.state),
    [undefined, undefined, 'done', 'done', 'dead'],
  )
  const [stats] = await store.operations.stats({ queue: 'q' })
  assert.equal(stats?.counts.done, 10_000)
  assert.equal(stats.counts.dead, 1)
})

test('takes effect within the call', async () => {
  const store = await open('memory:', {})
  const pushing = store.operations.push({ jobs: [newJob()] })
  const claiming = claim(store)
  assert.equal((await claiming).jobs.length, 1)
  assert.equal((await pushing)[0]?.status, 'pushed')
})

test('rings once for a burst', async () => {
  const store = await open('memory:', {})
  const bells: Bell[] = []
  store.listen((bell) => bells.push(bell))
  for (let i = 0; i < 10; i++) void store.operations.push({ jobs: newJobs(10) })
  void store.operations.push({ jobs: [newJob({ queue: 'other' })] })
  assert.deepEqual(bells, [])
  await Promise.resolve()
  assert.deepEqual(bells, [
    { kind: 'work', queue: 'q' },
    { kind: 'work', queue: 'other' },
  ])
})

test('gives no bells after the close', async () => {
  const store = await open('memory:', {})
  let bells = 0
  store.listen(() => bells++)
  void store.operations.push({ jobs: [newJob()] })
  await store.close()
  await new Promise(setImmediate)
  assert.equal(bells, 0)
})

test('jobs keep their places through many cancels and returns', async () => {
  const store = await open('memory:', {})
  await store.operations.configure({ queue: 'q', capacity: null })
  const jobs = newJobs(20_000)
  await store.operations.push({ jobs })
  await store.operations.cancel({ ids: jobs.slice(0, 10_000).map(({ id }) => id) })
  const { jobs: claimed } = await claim(store, { limit: 5_000 })
  await store.operations.release({ queue: 'q', items: claimed.toReversed() })
  const again = await claim(store, { limit: 10_000 })
  assert.deepEqual(
    again.jobs.map(({ id }) => id),
    jobs.slice(10_000).map(({ id }) => id),
  )
})

test('stats count 10,000 groups with waiting jobs, and look at no others', async () => {
  const store = await open('memory:', {})
  await store.operations.configure({ queue: 'q', capacity: null, groupRunning: 1 })
  const inGroups = () => Array.from({ length: 10_001 }, (_, at) => newJob({ group: `g${at}` }))
  await store.operations.push({ jobs: inGroups() })
  await store.operations.push({ jobs: inGroups() })
  assert.equal((await claim(store, { limit: 20_002 })).jobs.length, 10_001)
  assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.groupsAtLimit, 10_000)
})
