/** A wrapper of a few lines counts, delays, changes or fails any operation of any store. */
import assert from 'node:assert/strict'
import { isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { claim, conformance } from './suite.ts'

conformance('operations are wrapped', {
  'and counted': async (store) => {
    let calls = 0
    const { push, stats } = meddled(store, {
      push(input, next) {
        calls++
        return next(input)
      },
    }).operations
    await push({ jobs: newJobs(2) })
    await push({ jobs: newJobs(1) })
    assert.equal((await stats({}))[0]?.counts.waiting, 3)
    assert.equal(calls, 2)
  },

  'and delayed': async (store) => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const { push, stats } = meddled(store, { push: (input, next) => opened.then(() => next(input)) }).operations
    const pushed = push({ jobs: [newJob()] })
    assert.deepEqual(await stats({}), [])
    open()
    assert.equal((await pushed)[0]?.status, 'pushed')
  },

  'and made to fail, before and after they take effect': async (store) => {
    const away = () => new MillpondError('StoreUnavailable', 'the test took it away')
    const meddling: Meddling = { push: () => Promise.reject(away()) }
    const broken = meddled(store, meddling)
    const failed = (error: unknown) => isMillpondError(error, 'StoreUnavailable')
    await assert.rejects(broken.operations.push({ jobs: [newJob()] }), failed)
    assert.deepEqual(await store.operations.stats({}), [])
    meddling.push = async (input, next) => {
      await next(input)
      throw away()
    }
    await assert.rejects(broken.operations.push({ jobs: [newJob()] }), failed)
    delete meddling.push
    await broken.operations.push({ jobs: [newJob()] })
    assert.equal((await claim(broken)).jobs.length, 2)
  },

  'and changed, what goes in and what comes out': async (store) => {
    const few = meddled(store, {
      claim: (input, next) => next({ ...input, limit: 1 }),
      stats: async () => [],
    })
    await few.operations.push({ jobs: newJobs(3) })
    assert.equal((await claim(few)).jobs.length, 1)
    assert.deepEqual(await few.operations.stats({}), [])
    assert.equal((await claim(store)).jobs.length, 2)
  },
})
