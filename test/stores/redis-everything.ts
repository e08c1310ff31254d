/** Every operation once, for tests of what scripts touch and what a user may do. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import { claim } from '../conformance/suite.ts'
import { NULL, newJob, newJobs } from '../support/jobs.ts'

/** Without results. */
export const complete = (store: Store, holds: readonly { id: string; fence: number }[], queue = 'q') =>
  store.complete(
    queue,
    holds.map(({ id, fence }) => ({ id, fence, result: null })),
  )

/** Every operation once and more, on a queue that knows all states. */
export async function everything(store: Store): Promise<void> {
  await store.configure({ queue: 'q', capacity: 100, keepDead: 1000 })
  const jobs = [...newJobs(6), newJob({ key: 'k' }), newJob({ delay: 1 }), newJob({ priority: 9, key: 'l' })]
  await store.push(jobs)
  await store.cancel([jobs[3]?.id ?? ''])
  const held = (await claim(store, { limit: 7 })).jobs
  const [a, b, c, d, e] = held
  assert.ok(a && b && c && d && e)
  await store.extend('q', 1000, [{ ...a, progress: NULL }])
  await store.complete('q', [{ ...a, result: NULL }])
  const error = { code: 'HandlerFailed', name: 'Error', message: 'it failed' }
  await store.fail('q', [
    { ...b, error, delay: null },
    { ...c, error, delay: 0 },
    { ...d, error, delay: 10 },
  ])
  await store.release('q', [e])
  await store.record([{ queue: 'q', priority: 4, metric: 'wait', buckets: { 3: 1 } }])
  assert.equal((await store.find([a.id]))[0]?.state, 'done')
  for (const state of ['waiting', 'scheduled', 'running', 'done', 'dead', 'cancelled'] as const) {
    await store.admin.list({ queue: 'q', state, limit: 2 })
  }
  await store.admin.requeue({ ids: [b.id] })
  await store.admin.requeue({ queue: 'q', limit: 5 })
  await store.cancel([held[5]?.id ?? ''])
  await store.sweep(100)
  await claim(store)
  await store.stats({ minutes: 5 })
}

/** Every operation on a queue with limits, which was pushed to before. */
export async function everythingOfLimits(store: Store): Promise<void> {
  const queue = 'limited'
  await store.push(newJobs(3, { queue, group: 'g' }))
  await claim(store, { queue, limit: 1 })
  const rate = { count: 1000, per: 1000, burst: null }
  await store.configure({ queue, running: 9, rate, groupRunning: 4, groupRate: rate })
  await store.limitGroup?.(queue, 'g', { running: 3, rate, weight: 2 })
  const jobs = [newJob({ queue, cost: 2 }), newJob({ queue, group: 'h' }), newJob({ queue, group: 'h' })]
  await store.push(jobs)
  await store.admin.ahead?.(jobs[2]?.id ?? '')
  await store.cancel([jobs[1]?.id ?? ''])
  const [a, b, c] = (await claim(store, { queue })).jobs
  assert.ok(a && b && c)
  assert.deepEqual(await store.release(queue, [{ ...a, pause: 1 }, b]), ['ok', 'ok'])
  assert.deepEqual(await store.complete(queue, [{ ...c, result: null }]), ['ok'])
  assert.ok(((await store.admin.groups?.({ queue, limit: 10 })) ?? []).length > 0)
  await store.sweep(100)
  await claim(store, { queue })
  await store.configure({ queue, groupRunning: 3 })
  await claim(store, { queue, minPriority: 5 })
  await store.stats({ queue })
}
