/**
 * Random sequences of operations on schedules, with a clock that moves, on every store; each answer compared with the model's. Firings are of
 * what some earlier sweep has told, so many of them are stale. MILLPOND_SEED and MILLPOND_MODEL_TIMES as in model.test.ts.
 */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Store } from '../../src/store.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import type { Declaration, ScheduleRecord } from '../../src/values/schedules/records.ts'
import { stores } from '../conformance/stores.ts'
import { EPOCH } from '../conformance/vectors.ts'
import { depth } from '../support/depth.ts'
import { SchedulesModel } from './schedules-model.ts'

const seed = process.env.MILLPOND_SEED
const times = depth(0.5, 4)
const QUEUE = 'q'

const name = fc.constantFrom('a', 'b', 'c')
const operation = fc.oneof(
  fc.record({
    op: fc.constant('declare' as const),
    ...{ name, again: fc.constantFrom(false, false, true), paused: fc.constantFrom(false, false, false, true) },
    version: fc.constantFrom('1', '2', '3'),
    when: fc.constantFrom('every 10s', 'every 20s'),
    until: fc.constantFrom(null, null, EPOCH + 60_000),
  }),
  fc.record({ op: fc.constant('pause' as const), name, paused: fc.boolean() }),
  fc.record({ op: fc.constant('remove' as const), name }),
  fc.record({ op: fc.constant('sweep' as const) }),
  fc.record({
    op: fc.constant('fire' as const),
    /** Of all that sweeps have told, the last being 0. */
    told: fc.array(fc.nat(5), { minLength: 1, maxLength: 3 }),
    after: fc.constantFrom(10_000, 20_000, null),
    jobs: fc.nat(2),
  }),
  fc.record({ op: fc.constant('advance' as const), ms: fc.constantFrom(1, 1000, 10_000, 45_000, 91_000) }),
  fc.record({ op: fc.constant('capacity' as const), most: fc.constantFrom(null, 3) }),
  fc.record({ op: fc.constant('drain' as const) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

const scheduled = (version: string): Declaration['job'] => ({
  ...{ queue: QUEUE, priority: 4, key: null, group: null, cost: 1, attempts: null, timeout: null },
  data: { encoding: 'json', body: version },
})

class Driver {
  readonly #model = new SchedulesModel()
  readonly #store: Store
  readonly #clock: { now: number }
  readonly #told: ScheduleRecord[] = []

  constructor(store: Store, clock: { now: number }) {
    this.#store = store
    this.#clock = clock
    this.#model.makesLostAgain = store.name === 'redis'
  }

  async run(operations: readonly Operation[]): Promise<void> {
    for (const each of operations) {
      this.#clock.now += 1
      this.#model.now = this.#clock.now
      await this.#do(each)
      assert.deepEqual(await this.#store.operations.schedules({ limit: 100 }), this.#model.list(), each.op)
    }
    const [stats] = await this.#store.operations.stats({ queue: QUEUE })
    assert.equal(stats?.totals.pushed ?? 0, this.#model.pushed)
  }

  async #do(given: Operation): Promise<void> {
    const { operations } = this.#store
    const model = this.#model
    switch (given.op) {
      case 'declare': {
        const { op: _, ...rest } = given
        const job = scheduled(given.version)
        const declared: Declaration = { ...rest, tz: 'UTC', missed: 'once', jitter: 0, from: null, job }
        return assert.deepEqual(await operations.declare({ schedules: [declared] }), [model.declare(declared)])
      }
      case 'pause':
        return assert.equal(await operations.pauseSchedule(given), model.pause(given.name, given.paused))
      case 'remove':
        return assert.equal(await operations.removeSchedule(given), model.remove(given.name))
      case 'sweep': {
        const { schedules, nextDue } = await operations.sweep({ limit: 100 })
        assert.deepEqual({ due: schedules?.due ?? [], nextDue }, model.sweep())
        this.#told.unshift(...(schedules?.due ?? []))
        return
      }
      case 'fire': {
        const firings = given.told.flatMap((at) => this.#told[at] ?? []).map((record) => this.#firing(record, given))
        const outcomes = await operations.fire({ firings })
        return assert.deepEqual(
          outcomes,
          firings.map((firing) => model.fire(firing)),
        )
      }
      case 'advance':
        this.#clock.now += given.ms
        model.now = this.#clock.now
        return
      case 'capacity':
        await operations.configure({ queue: QUEUE, capacity: given.most })
        model.capacity = given.most
        return
      case 'drain': {
        const { jobs } = await operations.claim({ queue: QUEUE, worker: 'w', limit: 100, lease: 1000 })
        assert.equal(jobs.length, model.waiting)
        await operations.complete({ queue: QUEUE, items: jobs.map(({ id, fence }) => ({ id, fence, result: null })) })
        model.waiting = 0
        return
      }
    }
  }

  #firing({ name: of, version, nextAt, job }: ScheduleRecord, given: { after: number | null; jobs: number }) {
    const jobs = Array.from(
      { length: given.jobs },
      (): NewJob => ({ ...job, id: newId(), delay: 0, runAt: null, trace: null }),
    )
    const expected = nextAt ?? 0
    return { name: of, version, expected, next: given.after === null ? null : this.#clock.now + given.after, jobs }
  }
}

for (const { name: place, skip, open, modelRuns } of stores) {
  const numRuns = Math.ceil((modelRuns / 10) * times)
  describe(`model of schedules: ${place}`, { skip }, () => {
    test(`answers as the model does in ${numRuns} random sequences`, async (t) => {
      const sequence = fc.array(operation, { maxLength: 60, size: 'max' })
      const property = fc.asyncProperty(sequence, async (operations) => {
        const clock = { now: EPOCH }
        const { store, dispose } = await open({ clock: () => clock.now })
        try {
          if (store.capabilities.schedules) await new Driver(store, clock).run(operations)
          else t.skip('the store lacks schedules')
        } finally {
          await dispose()
        }
      })
      await fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed: Number(seed) }) })
    })
  })
}
