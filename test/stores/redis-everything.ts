/** Every operation once, for tests of what scripts touch and what a user may do. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { claim } from '../conformance/suite.ts'
import { NULL, newJob, newJobs } from '../support/jobs.ts'

/** Without results. */
export const complete = (store: Store, holds: readonly { id: string; fence: number }[], queue = 'q') =>
  store.operations.complete({ queue, items: holds.map(({ id, fence }) => ({ id, fence, result: null })) })

/** Every operation once and more, on a queue that knows all states. */
export async function everything(store: Store): Promise<void> {
  await store.operations.configure({ queue: 'q', capacity: 100, keepDead: 1000 })
  const jobs = [...newJobs(6), newJob({ key: 'k' }), newJob({ delay: 1 }), newJob({ priority: 9, key: 'l' })]
  await store.operations.push({ jobs })
  await store.operations.cancel({ ids: [jobs[3]?.id ?? ''] })
  const held = (await claim(store, { limit: 7 })).jobs
  const [a, b, c, d, e] = held
  assert.ok(a && b && c && d && e)
  await store.operations.extend({ queue: 'q', lease: 1000, items: [{ ...a, progress: NULL }] })
  await store.operations.complete({ queue: 'q', items: [{ ...a, result: NULL }] })
  const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
  await store.operations.fail({
    queue: 'q',
    items: [
      { ...b, error, delay: null },
      { ...c, error, delay: 0 },
      { ...d, error, delay: 10 },
    ],
  })
  await store.operations.release({ queue: 'q', items: [e] })
  await store.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'wait', buckets: { 3: 1 } }] })
  assert.equal((await store.operations.find({ ids: [a.id] }))[0]?.state, 'done')
  assert.equal((await store.operations.outcomes({ ids: [a.id, e.id] }))[0]?.state, 'done')
  for (const state of ['waiting', 'scheduled', 'running', 'done', 'dead', 'cancelled'] as const) {
    await store.operations.list({ queue: 'q', state, limit: 2, filter: { errorCode: 'none' } })
  }
  await store.operations.requeue({ ids: [b.id] })
  await store.operations.requeue({ queue: 'q', limit: 5 })
  await store.operations.cancel({ ids: [held[5]?.id ?? ''] })
  await store.operations.sweep({ limit: 100 })
  await claim(store)
  await store.operations.stats({ minutes: 5 })
  await store.operations.settings({ queue: 'q' })
  const later = newJob({ delay: 1000 })
  await store.operations.push({ jobs: [later] })
  await store.operations.update({ items: [{ id: later.id, data: NULL, priority: 9, delay: 0 }] })
  const records = (await store.operations.find({ ids: [later.id] })).filter((record) => record !== null)
  await store.operations.remove({ ids: [later.id] })
  await store.operations.restore({ records })
  await store.operations.remove({ ids: [later.id] })
  const lanes = [{ minPriority: 8, reserve: 1 }]
  const beat = { id: 'w', queue: 'q', host: 'h', pid: 1, slots: 2, busy: 0, lanes }
  await store.operations.heartbeat({ workers: [beat], gone: ['v'] })
  assert.equal((await store.operations.workers({ queue: 'q' })).length, 1)
  await store.operations.push({ jobs: newJobs(2, { queue: 'gone' }) })
  assert.deepEqual(await store.operations.remove({ queue: 'gone', limit: 10 }), { removed: 2, more: false })
}

/** Every operation on a queue with limits, which was pushed to before. */
export async function everythingOfLimits(store: Store): Promise<void> {
  const queue = 'limited'
  await store.operations.push({ jobs: newJobs(3, { queue, group: 'g' }) })
  await claim(store, { queue, limit: 1 })
  const rate = { count: 1000, per: 1000, burst: null }
  await store.operations.configure({ queue, running: 9, rate, groupRunning: 4, groupRate: rate })
  await store.operations.limitGroup({ queue, group: 'g', limits: { running: 3, rate, weight: 2 } })
  const jobs = [newJob({ queue, cost: 2 }), newJob({ queue, group: 'h' }), newJob({ queue, group: 'h' })]
  await store.operations.push({ jobs })
  await store.operations.ahead({ id: jobs[2]?.id ?? '' })
  await store.operations.cancel({ ids: [jobs[1]?.id ?? ''] })
  const [a, b, c] = (await claim(store, { queue })).jobs
  assert.ok(a && b && c)
  assert.deepEqual(await store.operations.release({ queue, items: [{ ...a, pause: 1 }, b] }), ['ok', 'ok'])
  assert.deepEqual(await store.operations.complete({ queue, items: [{ ...c, result: null }] }), ['ok'])
  assert.ok(((await store.operations.groups({ queue, limit: 10 })) ?? []).length > 0)
  await store.operations.sweep({ limit: 100 })
  await claim(store, { queue })
  await store.operations.configure({ queue, groupRunning: 3 })
  await claim(store, { queue, minPriority: 5 })
  await store.operations.stats({ queue })
}

/** Every operation of schedules. */
export async function everythingOfSchedules(store: Store): Promise<void> {
  const options = { priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null }
  const job = { queue: 'scheduled', ...options, data: NULL }
  const timing = { when: '@hourly', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null } as const
  const schedule = { ...timing, name: 's', version: '1', paused: false, job, again: false }
  assert.deepEqual(await store.operations.declare({ schedules: [schedule] }), ['created'])
  assert.equal(await store.operations.pauseSchedule({ name: 's', paused: true }), true)
  assert.equal(await store.operations.pauseSchedule({ name: 's', paused: false }), true)
  const due = (await store.operations.sweep({ limit: 100 })).schedules?.due ?? []
  const firings = due.map(({ name, version, nextAt }) => ({
    ...{ name, version, expected: nextAt ?? 0, next: null },
    jobs: [newJob({ queue: 'scheduled' })],
  }))
  assert.deepEqual(
    (await store.operations.fire({ firings })).map(({ status }) => status),
    ['fired'],
  )
  assert.equal((await store.operations.schedules({ limit: 10 })).length, 1)
  await store.operations.sweep({ limit: 100 })
  assert.equal(await store.operations.removeSchedule({ name: 's' }), true)
}

/** Every operation of steps. */
export async function everythingOfSteps(store: Store): Promise<void> {
  const queue = 'steps'
  const { operations } = store
  const entry = (name: string) => ({ name, meta: '{}', body: NULL })
  const park = { until: null, signals: 0, after: [], entries: [entry('=nap')], reason: '{}' }
  await operations.push({ jobs: [newJob({ queue, key: 'k' }), newJob({ queue, attempts: 1 }), newJob({ queue })] })
  const [a, b, c] = (await claim(store, { queue })).jobs
  assert.ok(a && b && c)
  const entries = [entry('=one'), entry('=two')]
  assert.deepEqual(await operations.journal({ queue, items: [a, b].map((job) => ({ ...job, entries })) }), ['ok', 'ok'])
  const items = [
    { ...a, park },
    { ...c, park: { ...park, after: [b.id] } },
  ]
  assert.deepEqual(await operations.release({ queue, items }), ['ok', 'ok'])
  const [signalled] = await operations.signal({ items: [{ queue, key: 'k', ...entry('!go/1') }] })
  assert.equal(signalled?.status, 'ok')
  assert.equal((await operations.entries({ items: [{ id: a.id, after: 0 }] }))[0]?.entries.length, 4)
  const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
  await operations.fail({ queue, items: [{ ...b, error, delay: null }] })
  assert.equal((await operations.requeue({ ids: [b.id], forget: 2 })).requeued, 1)
  const records = (await operations.find({ ids: [a.id, c.id] })).filter((record) => record !== null)
  assert.deepEqual(
    records.map(({ journal, parked }) => [journal, parked]),
    [
      [4, '{}'],
      [1, '{}'],
    ],
  )
  await operations.list({ queue, state: 'waiting', limit: 10 })
  await operations.remove({ ids: [a.id] })
  await operations.restore({ records: records.slice(0, 1).map((record) => ({ ...record, entries })) })
  await operations.cancel({ ids: [c.id] })
  await claim(store, { queue })
  await operations.sweep({ limit: 100 })
  assert.equal((await operations.remove({ queue, limit: 10 })).removed, 3)
}
