/** Firings on Redis, of which the jobs lie elsewhere than the schedules: each time has one job, however late who has pushed it is heard of. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { Calls } from '../../src/stores/redis/connection/calls.ts'
import { firingId } from '../../src/values/schedules/firing.ts'
import type { Firing } from '../../src/values/schedules/records.ts'
import { claim } from '../conformance/suite.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { newJob } from '../support/jobs.ts'
import { complete } from './redis-everything.ts'
import { openRedis } from './redis-fixture.ts'

const HOUR = 3_600_000
const QUEUE = 'q'

describe('firings', { skip: missingReason('redis') }, () => {
  const { script } = Calls.prototype
  const clock = { now: Date.now() }
  let store: Store
  let dispose: () => Promise<void>

  beforeEach(async () => {
    ;({ store, dispose } = await openRedis(serverUrl('redis') ?? '', { clock: () => clock.now }))
    // Who has ended is gone at once, so that its id alone keeps no second one away.
    await store.operations.configure({ queue: QUEUE, keepDone: 0 })
    const timing = { when: 'every 1h', tz: 'UTC', missed: 'all', jitter: 0, from: null, until: null } as const
    const job = {
      ...{ queue: QUEUE, priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null },
      data: { encoding: 'json', body: '1' } as const,
    }
    const schedules = ['one', 'other'].map((name) => ({
      ...timing,
      name,
      version: '1',
      paused: false,
      again: false,
      job,
    }))
    await store.operations.declare({ schedules })
    await store.operations.sweep({ limit: 10 })
  })
  afterEach(async () => {
    Calls.prototype.script = script
    await dispose()
  })

  async function fire(name: string): Promise<void> {
    const [schedule] = await store.operations.schedules({ limit: 1, name })
    const expected = schedule?.nextAt ?? 0
    const job = { ...newJob({ queue: QUEUE }), id: firingId(name, clock.now).id }
    const firing: Firing = { name, version: '1', expected, next: clock.now + HOUR, jobs: [job] }
    await store.operations.fire({ firings: [firing] })
  }

  /** Does all jobs. */
  async function work(): Promise<void> {
    const { jobs } = await claim(store, { queue: QUEUE, limit: 10 })
    await complete(store, jobs, QUEUE)
  }

  const pushed = async () => (await store.operations.stats({ queue: QUEUE }))[0]?.totals.pushed

  test('a process that ends before it tells that it has pushed, and hours without any', async () => {
    Calls.prototype.script = function (this: Calls, name, ...rest) {
      return name === 'fired' ? Promise.reject(new Error('the process has ended')) : script.call(this, name, ...rest)
    }
    await assert.rejects(fire('one'), /has ended/)
    Calls.prototype.script = script
    await work()
    clock.now += 3 * HOUR
    await fire('other')
    await work()
    await store.operations.sweep({ limit: 10 })
    await work()
    assert.equal(await pushed(), 2)
  })

  test('a call that comes after hours, on a server that is behind in time', async () => {
    let late: (() => Promise<readonly unknown[]>) | undefined
    Calls.prototype.script = function (this: Calls, name, ...rest) {
      if (name === 'fire') late = () => script.call(this, name, ...rest)
      return script.call(this, name, ...rest)
    }
    await fire('one')
    Calls.prototype.script = script
    await work()
    clock.now += 3 * HOUR
    await fire('other')
    await work()
    assert.deepEqual(await late?.(), [2])
    assert.equal(await pushed(), 2)
  })
})
