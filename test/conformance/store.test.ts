/** What a store says of itself, and its end. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/values/errors.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
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
      configure: () => store.configure({ queue: 'q', paused: true }),
      push: () => store.push([newJob()]),
      claim: () => claim(store),
      complete: () => store.complete('q', [{ ...hold, result: null }]),
      fail: () => store.fail('q', [{ ...hold, error: ERROR, delay: 0 }]),
      release: () => store.release('q', [hold]),
      extend: () => store.extend('q', 100, [{ ...hold, progress: null }]),
      cancel: () => store.cancel([hold.id]),
      sweep: () => store.sweep(10),
      find: () => store.find([hold.id]),
      stats: () => store.stats({}),
      record: () => store.record([{ queue: 'q', priority: 4, metric: 'run', buckets: { 1: 1 } }]),
      list: () => store.admin.list({ queue: 'q', state: 'waiting', limit: 1 }),
      requeue: () => store.admin.requeue({ ids: [hold.id] }),
    }
    for (const [name, call] of Object.entries(calls)) await assert.rejects(call, closed, name)
  },

  'a fence beyond any that is given out is stale': async (store) => {
    const { id } = await running(store)
    const hold = { id, fence: Number.MAX_SAFE_INTEGER }
    assert.deepEqual(await store.extend('q', 100, [{ ...hold, progress: null }]), ['stale'])
    assert.deepEqual(await store.complete('q', [{ ...hold, result: null }]), ['stale'])
    assert.deepEqual(await store.fail('q', [{ ...hold, error: ERROR, delay: 0 }]), ['stale'])
    assert.deepEqual(await store.release('q', [hold]), ['stale'])
  },

  'closing twice is closing once': async (store) => {
    await Promise.all([store.close(), store.close()])
    await store.close()
  },

  'a call under way at the close settles': async (store) => {
    // Handled from the start: some may be rejected before the store is closed.
    const pushes = Promise.allSettled(newJobs(20).map((job) => store.push([job])))
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
        await store.push([newJob()])
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
        await one.store.push([newJob()])
        assert.deepEqual(await two.store.stats({}), [])
      } finally {
        await one.dispose()
        await two.dispose()
      }
    })
  })
}
