/** Calls that are under way at the same time. */

import assert from 'node:assert/strict'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { claim, conformance, running } from './suite.ts'

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

conformance('concurrency', {
  'claims never share a job, and leave none behind': async (store) => {
    const jobs = newJobs(1_000)
    await store.operations.push({ jobs })
    const claimed: string[] = []
    const claimer = async () => {
      for (;;) {
        const { jobs } = await claim(store, { limit: 7 })
        if (jobs.length === 0) return
        claimed.push(...jobs.map(({ id }) => id))
      }
    }
    await Promise.all(times(20, claimer))
    assert.equal(claimed.length, jobs.length)
    assert.deepEqual(claimed.toSorted(), jobs.map(({ id }) => id).toSorted())
  },

  'pushes with the same key give one job': async (store) => {
    const outcomes = (
      await Promise.all(times(50, () => store.operations.push({ jobs: [newJob({ key: 'k' })] })))
    ).flat()
    const pushed = outcomes.filter(({ status }) => status === 'pushed')
    assert.equal(pushed.length, 1)
    for (const { status, id } of outcomes) {
      assert.notEqual(status, 'full')
      assert.equal(id, pushed[0]?.id)
    }
    assert.equal((await claim(store)).jobs.length, 1)
  },

  'pushes never go beyond the capacity': async (store) => {
    await store.operations.configure({ queue: 'q', capacity: 10 })
    const outcomes = (await Promise.all(times(30, () => store.operations.push({ jobs: [newJob()] })))).flat()
    assert.equal(outcomes.filter(({ status }) => status === 'pushed').length, 10)
    assert.equal(outcomes.filter(({ status }) => status === 'full').length, 20)
  },

  'calls of one tick have outcomes of their own': async (store) => {
    await store.operations.configure({ queue: 'small', capacity: 1 })
    const hold = await running(store)
    const [job, twin, big] = [newJob(), newJob({ queue: 'small' }), newJob({ queue: 'small' })]
    const answers = await Promise.all([
      store.operations.push({ jobs: [job] }),
      store.operations.push({ jobs: [twin] }),
      store.operations.push({ jobs: [big] }),
      store.operations.complete({ queue: 'q', items: [{ id: hold.id, fence: 99, result: null }] }),
      store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }),
      store.operations.fail({ queue: 'q', items: [{ id: newJob().id, fence: 1, error: ERROR, delay: 0 }] }),
    ])
    assert.deepEqual(answers, [
      [{ status: 'pushed', id: job.id }],
      [{ status: 'pushed', id: twin.id }],
      [{ status: 'full', id: big.id }],
      ['stale'],
      ['ok'],
      ['stale'],
    ])
  },

  'of many completions of one claim, one counts': async (store) => {
    const hold = await running(store)
    const outcomes = await Promise.all(
      times(20, () => store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] })),
    )
    assert.equal(outcomes.flat().filter((outcome) => outcome === 'ok').length, 1)
  },

  'a cancel and a completion agree on who came first': async (store) => {
    for (let round = 0; round < 10; round++) {
      const hold = await running(store)
      const [[outcome], [state]] = await Promise.all([
        store.operations.complete({ queue: 'q', items: [{ ...hold, result: null }] }),
        store.operations.cancel({ ids: [hold.id] }),
      ])
      assert.equal(state, outcome === 'ok' ? 'done' : 'cancelled')
      assert.equal((await store.operations.find({ ids: [hold.id] }))[0]?.state, state)
    }
  },

  'of many sweeps, one takes back each lost job': async (store, clock) => {
    await store.operations.push({ jobs: newJobs(50) })
    await claim(store, { lease: 10 })
    clock.now += 10
    const swept = await Promise.all(times(10, () => store.operations.sweep({ limit: 20 })))
    const lost = swept.flatMap(({ lost }) => lost.map(({ id }) => id))
    // What a slow part of a store has done is told by a later sweep.
    await until(async () => {
      if (lost.length < 50) lost.push(...(await store.operations.sweep({ limit: 20 })).lost.map(({ id }) => id))
      return lost.length >= 50
    }, 'all are told')
    assert.equal(lost.length, 50)
    assert.equal(new Set(lost).size, 50)
  },

  'a mixed crowd of workers finishes every job exactly once': async (store) => {
    const jobs = newJobs(300, { attempts: 100 })
    await store.operations.push({ jobs })
    const finished: string[] = []
    const worker = async (index: number) => {
      for (let turn = index; finished.length < jobs.length; turn++) {
        const { jobs } = await claim(store, { limit: 5, worker: `w${index}` })
        const [a, b, ...rest] = jobs
        if (a === undefined) {
          await new Promise(setImmediate)
          continue
        }
        // The first of a batch is sometimes given back or failed, so that jobs keep changing hands.
        if (turn % 3 === 0) await store.operations.release({ queue: 'q', items: [a] })
        else if (turn % 3 === 1) await store.operations.fail({ queue: 'q', items: [{ ...a, error: ERROR, delay: 0 }] })
        else rest.push(a)
        if (b !== undefined) rest.push(b)
        const outcomes = await store.operations.complete({
          queue: 'q',
          items: rest.map(({ id, fence }) => ({ id, fence, result: null })),
        })
        rest.forEach(({ id }, i) => {
          if (outcomes[i] === 'ok') finished.push(id)
        })
      }
    }
    await Promise.all(times(8, worker))
    assert.equal(new Set(finished).size, jobs.length)
    assert.equal(finished.length, jobs.length)
    const [stats] = await store.operations.stats({ queue: 'q' })
    const { counts } = store.capabilities
    assert.deepEqual(stats?.counts, {
      blocked: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      done: counts ? 300 : 0,
      dead: 0,
      cancelled: 0,
    })
  },
})
