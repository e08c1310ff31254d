/** The durable store of a spilling one fails, in each step of what is done there: nothing that was accepted is lost. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { after } from '../support/cleaning.ts'
import { NULL, newJobs } from '../support/jobs.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { openDurable, openSpilling } from '../support/spilling.ts'
import { until } from '../support/until.ts'

const down = () => Promise.reject(new MillpondError('StoreUnavailable', 'it is down'))
/** The call takes effect, but its answer is lost. */
const lost = async (call: Promise<unknown>): Promise<never> => {
  await call
  return down()
}

interface Place {
  store: Store
  durable: Store
  /** What the durable store does instead. It may be changed at any time. */
  faults: Meddling
  clock: { now: number }
}

/** With `count` jobs, two of them in memory. */
async function filled(t: TestContext, count: number): Promise<Place & { ids: string[] }> {
  const clock = { now: Date.now() }
  const durable = openDurable({ clock: () => clock.now })
  const faults: Meddling = {}
  // The test looks into it after a close.
  const kept = { ...meddled(durable, faults), close: async () => {} }
  const store = await openSpilling({ clock: () => clock.now }, kept)
  after(t, () => durable.close())
  after(t, () => store.close().catch(() => {}))
  const jobs = newJobs(count)
  await store.operations.push({ jobs })
  return { store, durable, faults, clock, ids: jobs.map(({ id }) => id) }
}

/** Claims until no more jobs come, as a worker does. @returns their ids, in order */
async function drained({ operations }: Store): Promise<string[]> {
  const ids: string[] = []
  await until(async () => {
    const { jobs } = await operations.claim({ queue: 'q', worker: 'w', limit: 3, lease: 60_000 })
    ids.push(...jobs.map(({ id }) => id))
    const [stats] = await operations.stats({})
    return stats?.counts.waiting === 0
  })
  return ids
}

const isUnavailable = (error: unknown) => isMillpondError(error, 'StoreUnavailable')
const idsOf = (jobs: readonly NewJob[]) => jobs.map(({ id }) => id)

test('while it is down, memory goes on, and what would be spilled is refused', async (t) => {
  const { store, faults, ids } = await filled(t, 5)
  for (const name of ['push', 'claim', 'find', 'stats', 'sweep'] as const) faults[name] = down
  await assert.rejects(store.operations.push({ jobs: newJobs(3, { fresh: true }) }), isUnavailable)
  const high = newJobs(2, { priority: 9, fresh: true })
  const mixed = await store.operations.push({ jobs: [...newJobs(1, { queue: 'other' }), ...high] })
  assert.deepEqual(
    mixed.map(({ status }) => status),
    ['pushed', 'failed', 'failed'],
  )
  const request = { queue: 'q', worker: 'w', limit: 1, lease: 60_000 }
  const { jobs } = await store.operations.claim(request)
  assert.deepEqual(
    jobs.map(({ id }) => id),
    ids.slice(0, 1),
  )
  await store.operations.claim(request)
  await assert.rejects(store.operations.claim(request), isUnavailable)
  for (const name of ['push', 'claim', 'find', 'stats', 'sweep'] as const) delete faults[name]
  assert.deepEqual(await drained(store), ids.slice(2))
})

test('while it is down, schedules in memory fire', async (t) => {
  const { store, faults, clock } = await filled(t, 3)
  const { operations } = store
  const job = { queue: 'q', priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null, data: NULL }
  const timing = { when: 'every 1h', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null } as const
  await operations.declare({ schedules: [{ ...timing, name: 's', version: '1', paused: false, again: false, job }] })
  faults.sweep = down
  clock.now += 60_000
  const { schedules } = await operations.sweep({ limit: 100 })
  assert.deepEqual(
    schedules?.due.map(({ name }) => name),
    ['s'],
  )
})

for (const [what, removal] of [
  ['is lost', (call: () => Promise<unknown>) => lost(call())],
  ['says that nothing happened', down],
] as const) {
  test(`the answer of a removal ${what}: its jobs come once`, async (t) => {
    const { store, faults, ids } = await filled(t, 6)
    let failures = 2
    faults.remove = (input, next) => (failures-- > 0 ? removal(() => next(input)) : next(input))
    assert.deepEqual(await drained(store), ids)
    assert.ok(failures < 0)
  })

  test(`the store closes while the answer of a removal ${what}: a new process has each job once`, async (t) => {
    const { store, durable, faults, ids, clock } = await filled(t, 6)
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    faults.remove = (input, next) => {
      resolve()
      return removal(() => next(input))
    }
    const first = store.operations.claim({ queue: 'q', worker: 'w', limit: 3, lease: 60_000 })
    await asked
    const { jobs } = await first
    await store.close()
    delete faults.remove
    // The lease of what was not removed ends.
    clock.now += 3_600_000
    await durable.operations.sweep({ limit: 100 })
    const again = await openSpilling({ clock: () => clock.now }, durable)
    const came = await drained(again)
    assert.deepEqual(came.toSorted(), ids.toSorted(), `${jobs.length} were running`)
  })
}

test('the answer of a claim is lost: its jobs come after its lease', async (t) => {
  const { store, faults, ids, clock } = await filled(t, 4)
  let failures = 1
  faults.claim = (input, next) => (failures-- > 0 ? lost(next(input)) : next(input))
  const { jobs } = await store.operations.claim({ queue: 'q', worker: 'w', limit: 4, lease: 3_600_000 })
  assert.equal(jobs.length, 2)
  clock.now += 120_000
  await store.operations.sweep({ limit: 100 })
  const rest = await drained(store)
  assert.deepEqual(rest.toSorted(), ids.slice(2).toSorted())
})

test('answers of the hand-over are lost: it is repeated, and no job is there twice', async (t) => {
  const { store, durable, faults, ids } = await filled(t, 5)
  let failures = 2
  faults.restore = (input, next) => (failures-- > 0 ? lost(next(input)) : next(input))
  await store.close()
  const stats = await durable.operations.stats({})
  assert.equal(
    stats.reduce((sum, { counts }) => sum + counts.waiting, 0),
    5,
  )
  assert.deepEqual(await drained(await openSpilling({}, durable)), ids)
})

test('the hand-over fails for good: the close says how many jobs were lost', async (t) => {
  const { store, faults } = await filled(t, 5)
  faults.restore = () => Promise.reject(new MillpondError('StoreCorrupt', 'the file is damaged'))
  await assert.rejects(store.close(), (error) => {
    assert.ok(isMillpondError(error, 'StoreCorrupt'))
    assert.match(error.message, /2 live jobs .* lost/)
    return true
  })
})

test('two processes share a durable store: each job comes to one of them', async (t) => {
  const durable = openDurable()
  const shared = { ...durable, close: async () => {} }
  const [one, two] = [await openSpilling({}, shared), await openSpilling({}, shared)]
  after(t, () => Promise.all([one.close(), two.close()]))
  const jobs = newJobs(60)
  for (const [n, job] of jobs.entries()) await (n % 2 === 0 ? one : two).operations.push({ jobs: [job] })
  const [first, second] = await Promise.all([drained(one), drained(two)])
  assert.deepEqual([...first, ...second].toSorted(), idsOf(jobs).toSorted())
})
