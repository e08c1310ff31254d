/** Bells are hints, but within one process and with somebody listening they must come. */

import assert from 'node:assert/strict'
import { ERROR, newJob, newJobs, recordOf } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { hear } from './bells.ts'
import { claim, everyWay, running, setsClockForDelays } from './suite.ts'

everyWay('bells', {
  'work: pushed': async (store) => {
    await hear(store, 'work', () => store.operations.push({ jobs: [newJob()] }))
  },

  'work: released, failed, promoted, lost, re-queued': async (store, clock) => {
    setsClockForDelays(store)
    const released = await running(store)
    await hear(store, 'work', () => store.operations.release({ queue: 'q', items: [released] }))
    await store.operations.cancel({ ids: [released.id] })
    const failed = await running(store)
    await hear(store, 'work', () =>
      store.operations.fail({ queue: 'q', items: [{ ...failed, error: ERROR, delay: 0 }] }),
    )
    await store.operations.cancel({ ids: [failed.id] })
    await store.operations.push({ jobs: [newJob({ delay: 50 })] })
    clock.now += 50
    await hear(store, 'work', () => store.operations.sweep({ limit: 10 }))
    await claim(store, { lease: 50 })
    clock.now += 50
    await hear(store, 'work', () => store.operations.sweep({ limit: 10 }))
    await hear(store, 'work', () => store.operations.requeue({ ids: [failed.id] }))
    await store.operations.cancel({ ids: [failed.id] })
    const bulk = { queue: 'q', state: 'cancelled', change: { kind: 'requeue' }, limit: 10 } as const
    await hear(store, 'work', () => store.operations.bulk(bulk))
  },

  'work: scheduled, and due soon: the claim that follows tells when': async (store) => {
    setsClockForDelays(store)
    await hear(store, 'work', () => store.operations.push({ jobs: [newJob({ delay: 900 })] }))
    assert.equal((await claim(store)).retryAfter, 900)
    const failed = await running(store)
    await hear(store, 'work', () =>
      store.operations.fail({ queue: 'q', items: [{ ...failed, error: ERROR, delay: 300 }] }),
    )
    assert.equal((await claim(store)).retryAfter, 300)
    await store.operations.configure({ queue: 'q', backoff: { base: 200, factor: 1, max: 200, jitter: 0 } })
    const again = await running(store)
    await hear(store, 'work', () =>
      store.operations.fail({ queue: 'q', items: [{ ...again, error: ERROR, delay: 'backoff' }] }),
    )
    assert.equal((await claim(store)).retryAfter, 200)
    await store.operations.configure({ queue: 'q', backoff: { base: 0, factor: 1, max: 0, jitter: 0 } })
    const atOnce = await running(store)
    await hear(store, 'work', () =>
      store.operations.fail({ queue: 'q', items: [{ ...atOnce, error: ERROR, delay: 'backoff' }] }),
    )
  },

  'room: claimed or cancelled in a full queue': async (store) => {
    await store.operations.configure({ queue: 'q', capacity: 2 })
    const jobs = newJobs(2)
    await store.operations.push({ jobs })
    await hear(store, 'room', () => claim(store, { limit: 1 }))
    await hear(store, 'room', () => store.operations.cancel({ ids: jobs.map(({ id }) => id) }))
  },

  'finished: completed or dead': async (store) => {
    const done = await running(store)
    await hear(
      store,
      'finished',
      () => store.operations.complete({ queue: 'q', items: [{ ...done, result: null }] }),
      done.id,
    )
    const dead = await running(store)
    await hear(
      store,
      'finished',
      () => store.operations.fail({ queue: 'q', items: [{ ...dead, error: ERROR, delay: null }] }),
      dead.id,
    )
  },

  'finished: cancelled, waiting and running': async (store) => {
    const job = newJob()
    await store.operations.push({ jobs: [job] })
    await hear(store, 'finished', () => store.operations.cancel({ ids: [job.id] }), job.id)
    const { id } = await running(store)
    await hear(store, 'finished', () => store.operations.cancel({ ids: [id] }), id)
  },

  'finished: dead of a lost lease': async (store, clock) => {
    const { id } = await running(store, { attempts: 1 })
    clock.now += 60_000
    await hear(store, 'finished', () => store.operations.sweep({ limit: 10 }), id)
  },

  'cancelled: while running': async (store) => {
    const { id } = await running(store)
    await hear(store, 'cancelled', () => store.operations.cancel({ ids: [id] }), id)
  },

  'removed: whoever waits for the job, its slot or its room looks': async (store) => {
    await store.operations.configure({ queue: 'q', running: 1, capacity: 2 })
    for (const kind of ['finished', 'cancelled'] as const) {
      const { id } = await running(store)
      await hear(store, kind, () => store.operations.remove({ ids: [id] }), id)
    }
    const { id: held } = await running(store)
    const next = newJob()
    await store.operations.push({ jobs: [next] })
    assert.deepEqual((await claim(store)).jobs, [], 'no slot is free')
    await hear(store, 'work', () => store.operations.remove({ ids: [held] }))
    await store.operations.remove({ ids: [next.id] })
    const jobs = newJobs(2)
    await store.operations.push({ jobs })
    await hear(store, 'room', () => store.operations.remove({ ids: jobs.map(({ id }) => id) }))
    await store.operations.push({ jobs: newJobs(2) })
    await hear(store, 'room', () => store.operations.remove({ queue: 'q', state: 'waiting', limit: 10 }))
  },

  'work: updated so that it is due, or due soon, and restored': async (store) => {
    const job = newJob({ delay: 60_000 })
    await store.operations.push({ jobs: [job] })
    assert.deepEqual((await claim(store)).jobs, [])
    await hear(store, 'work', () => store.operations.update({ items: [{ id: job.id, delay: 500 }] }))
    assert.equal((await claim(store)).retryAfter, 500)
    await hear(store, 'work', () => store.operations.update({ items: [{ id: job.id, delay: 0 }] }))
    assert.equal((await claim(store)).jobs.length, 1)
    await hear(store, 'work', () => store.operations.restore({ records: [recordOf()] }))
    assert.equal((await claim(store)).jobs.length, 1)
  },

  'nothing more after the end of listening, everything to the others': async (store) => {
    let stopped = 0
    let heard = 0
    const stop = store.listen(() => stopped++)
    const stopOther = store.listen(() => heard++)
    stop()
    stop()
    await store.operations.push({ jobs: [newJob()] })
    await until(() => heard > 0, 'a bell')
    stopOther()
    assert.equal(stopped, 0)
  },
})
