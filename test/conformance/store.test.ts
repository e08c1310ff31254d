/** What a store says of itself, and its end. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { ERROR, newJob, newJobs, recordOf } from '../support/jobs.ts'
import { stores } from './stores.ts'
import { claim, conformance, running } from './suite.ts'

const closed = (error: unknown) => isMillpondError(error, 'Closed')

conformance('a store and its end', {
  'transactions are there exactly where the capabilities say so': async (store) => {
    assert.equal(store.transactions !== undefined, store.capabilities.transactions)
  },

  'after close every call is refused': async (store) => {
    const hold = await running(store)
    await store.close()
    const calls: Record<string, () => Promise<unknown>> = {
      configure: () => store.operations.configure({ queue: 'q', paused: true }),
      push: () => store.operations.push({ jobs: [newJob()] }),
      claim: () => claim(store),
      complete: () => store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }),
      fail: () => store.operations.fail({ queue: 'q', items: [{ ...hold, error: ERROR, delay: 0 }] }),
      release: () => store.operations.release({ queue: 'q', items: [hold] }),
      extend: () => store.operations.extend({ queue: 'q', lease: 100, items: [{ ...hold, progress: null }] }),
      journal: () => store.operations.journal({ queue: 'q', items: [{ ...hold, entries: [] }] }),
      entries: () => store.operations.entries({ items: [{ id: hold.id, after: 0 }] }),
      signal: () => store.operations.signal({ items: [{ id: hold.id, name: '!go/1', meta: '{}', body: null }] }),
      cancel: () => store.operations.cancel({ ids: [hold.id] }),
      sweep: () => store.operations.sweep({ limit: 10 }),
      find: () => store.operations.find({ ids: [hold.id] }),
      outcomes: () => store.operations.outcomes({ ids: [hold.id] }),
      stats: () => store.operations.stats({}),
      record: () =>
        store.operations.record({ slices: [{ queue: 'q', priority: 4, metric: 'run', buckets: { 1: 1 } }] }),
      list: () => store.operations.list({ queue: 'q', state: 'waiting', limit: 1 }),
      requeue: () => store.operations.requeue({ ids: [hold.id] }),
      settings: () => store.operations.settings({ queue: 'q' }),
      limitGroup: () => store.operations.limitGroup({ queue: 'q', group: 'g', limits: null }),
      update: () => store.operations.update({ items: [{ id: hold.id, priority: 1 }] }),
      remove: () => store.operations.remove({ ids: [hold.id] }),
      bulk: () => store.operations.bulk({ queue: 'q', state: 'dead', change: { kind: 'requeue' }, limit: 0 }),
      restore: () => store.operations.restore({ records: [recordOf()] }),
      groups: () => store.operations.groups({ queue: 'q', limit: 1 }),
      ahead: () => store.operations.ahead({ id: hold.id }),
      relatives: () => store.operations.relatives({ ids: [hold.id], limit: 1 }),
      heartbeat: () => store.operations.heartbeat({ workers: [], gone: ['w'] }),
      workers: () => store.operations.workers({}),
      declare: () => store.operations.declare({ schedules: [] }),
      schedules: () => store.operations.schedules({ limit: 1 }),
      pauseSchedule: () => store.operations.pauseSchedule({ name: 's', paused: true }),
      removeSchedule: () => store.operations.removeSchedule({ name: 's' }),
      fire: () => store.operations.fire({ firings: [] }),
    }
    assert.deepEqual(Object.keys(calls).sort(), Object.keys(store.operations).sort())
    for (const [name, call] of Object.entries(calls)) await assert.rejects(call, closed, name)
  },

  'a fence beyond any that is given out is stale': async (store) => {
    const { id } = await running(store)
    const hold = { id, fence: Number.MAX_SAFE_INTEGER }
    assert.deepEqual(await store.operations.extend({ queue: 'q', lease: 100, items: [{ ...hold, progress: null }] }), [
      'stale',
    ])
    assert.deepEqual(await store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }), ['stale'])
    assert.deepEqual(await store.operations.fail({ queue: 'q', items: [{ ...hold, error: ERROR, delay: 0 }] }), [
      'stale',
    ])
    assert.deepEqual(await store.operations.release({ queue: 'q', items: [hold] }), ['stale'])
  },

  'closing twice is closing once': async (store) => {
    await Promise.all([store.close(), store.close()])
    await store.close()
  },

  'a call under way at the close settles': async (store) => {
    // Handled from the start: some may be rejected before the store is closed.
    const pushes = Promise.allSettled(newJobs(20).map((job) => store.operations.push({ jobs: [job] })))
    await store.close()
    for (const settled of await pushes) {
      if (settled.status === 'fulfilled') assert.equal(settled.value[0]?.status, 'pushed')
      else assert.ok(closed(settled.reason), String(settled.reason))
    }
  },
})

for (const { name, skip, open } of stores) {
  describe(`opening: ${name}`, { skip }, () => {
    test('an unknown option is refused by name', async () => {
      await assert.rejects(open({ noSuchOption: 1 }), (error) => {
        assert.ok(isMillpondError(error, 'InvalidOption'), String(error))
        assert.match(error.message, /noSuchOption/)
        return true
      })
    })

    test('without a clock of its own the store goes by the time of day', async () => {
      const { store, dispose } = await open()
      try {
        const before = Date.now()
        await store.operations.push({ jobs: [newJob()] })
        const { now, jobs } = await claim(store)
        assert.ok(now >= before - 1_000 && now <= Date.now() + 1_000)
        assert.equal(jobs.length, 1)
        assert.ok(Number.isInteger(now), 'whole milliseconds')
      } finally {
        await dispose()
      }
    })

    test('two stores share nothing', async () => {
      const one = await open()
      const two = await open()
      try {
        await one.store.operations.push({ jobs: [newJob()] })
        assert.deepEqual(await two.store.operations.stats({}), [])
      } finally {
        await one.dispose()
        await two.dispose()
      }
    })
  })
}
