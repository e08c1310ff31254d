/** Schedules that cannot fire, beside one that can. */
import assert from 'node:assert/strict'
import type { Store } from '../../src/store.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { DEFAULTS } from '../../src/values/settings/contract-defaults.ts'
import { Scheduler } from '../../src/worker/scheduler.ts'
import { newJob } from '../support/jobs.ts'
import { claim, conformance } from './suite.ts'

const EVERY = 10_000
const LIMIT = { limit: 100 }

const declaration = (name: string, queue: string): Declaration => ({
  ...{ name, version: '1', when: 'every 10s', tz: 'UTC', missed: 'once', jitter: 0, from: null, until: null },
  ...{ paused: false, again: false },
  job: {
    ...{ queue, priority: 4, key: null, group: null, cost: 1, attempts: 1, timeout: null },
    data: { encoding: 'json', body: '1' },
  },
})

/** What a worker does now and then. */
async function look(store: Store, scheduler: Scheduler): Promise<void> {
  const { schedules } = await store.operations.sweep(LIMIT)
  if (schedules !== null) await scheduler.fire(schedules)
}

conformance('schedules', {
  'as many as a sweep tells of wait for room, and those behind them fire': async (store, clock) => {
    const { operations } = store
    await operations.configure({ queue: 'full', capacity: 1 })
    await operations.push({ jobs: [newJob({ queue: 'full' })] })
    const waiting = Array.from({ length: DEFAULTS.schedule.due + 1 }, (_, at) => `a${1000 + at}`)
    const schedules = [...waiting.map((name) => declaration(name, 'full')), declaration('z', 'q')]
    await operations.declare({ schedules })
    const troubles = new Set<string>()
    const scheduler = new Scheduler(store, ({ code }) => troubles.add(code))
    // They get their first times.
    for (let left = 3; left > 0; left--) await look(store, scheduler)
    clock.now += EVERY
    for (let left = 4; left > 0; left--) await look(store, scheduler)
    assert.equal((await claim(store)).jobs.length, 1, 'the one that has room has fired, once')
    assert.deepEqual([...troubles], ['QueueFull'])
    const [{ counts } = { counts: undefined }] = await operations.stats({ queue: 'full' })
    assert.equal(counts?.waiting, 1, 'no other has')
  },
})
