/**
 * Firing into a queue that has less room than times were missed, in many orders of the calls: two processes sweep and fire, a worker takes
 * jobs and ends them, and a producer pushes a job with the key that one of the schedules gives its jobs. Whatever the order, the queue
 * never has more jobs than its capacity, no key is held twice, and in the end each time that was missed has had its job, once.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { firingId } from '../../src/values/schedules/firing.ts'
import type { Declaration } from '../../src/values/schedules/records.ts'
import { Scheduler } from '../../src/worker/scheduler.ts'
import { seeded } from '../faults/harness.ts'
import { depth } from '../support/depth.ts'
import { newJob } from '../support/jobs.ts'
import { inAllOrders, type Path } from './orders.ts'
import { PLACES, type Processes } from './processes.ts'
import { clock } from './world.ts'

const SEED = Number(process.env.MILLPOND_INTERLEAVE_SEED ?? randomInt(2 ** 31))
const MOST_ORDERS = depth(6, 60)
const EVERY = 10_000
/** Times that each schedule has missed. */
const MISSED = 5
const CAPACITY = 3
const KEY = 'k'
/** Looks, each with the end of all that wait, after which every time must have had its job. */
const MOST_LOOKS = 20

const LIMIT = { limit: 100 }
const CLAIM = { worker: 'w', lease: 1e9, minPriority: 0, perGroup: 1000 }

const declaration = (queue: string, name: string, key: string | null): Declaration => ({
  ...{ name, version: '1', when: 'every 10s', tz: 'UTC', jitter: 0, from: null, until: null },
  ...{ missed: key === null ? 'all' : 'once', paused: false, again: false },
  job: {
    ...{ queue, priority: 4, key, group: null, cost: 1, attempts: 1, timeout: null },
    data: { encoding: 'json', body: '1' },
  },
})

interface Waiting {
  session: number
  go(): void
}

/** Lets one call of one session go at a time. */
class Turns {
  readonly #waiting: Waiting[] = []

  of(store: Store, session: number): Store {
    return around(store, (_, input, next) =>
      new Promise<void>((go) => this.#waiting.push({ session, go })).then(() => next(input)),
    )
  }

  /** @param seen is called after each call, with nothing under way */
  async race(path: Path, sessions: readonly Promise<unknown>[], seen: () => Promise<void>): Promise<void> {
    const open = new Set(sessions.keys())
    for (const [at, session] of sessions.entries()) session.finally(() => open.delete(at)).catch(() => {})
    for (;;) {
      // Each session that goes on asks for its next call, or is over.
      while (this.#waiting.length < open.size) await new Promise<void>((again) => setImmediate(again))
      if (open.size === 0) break
      const chosen = path.choose(this.#waiting.map(({ session }) => session).sort())
      const at = Math.max(
        0,
        this.#waiting.findIndex(({ session }) => session === chosen),
      )
      this.#waiting.splice(at, 1)[0]?.go()
      while (this.#waiting.length < open.size) await new Promise<void>((again) => setImmediate(again))
      await seen()
    }
    await Promise.all(sessions)
  }
}

for (const { name: place, skip, open } of PLACES) {
  describe(`firing into a full queue: ${place}`, { skip }, () => {
    let processes: Processes
    let count = 0
    before(async () => {
      processes = await open(2)
    })
    after(() => processes.close())

    test('each time has its job, and no more jobs wait than there is room for', async (t) => {
      const [one, other = one] = processes.stores
      assert.ok(one !== undefined && other !== undefined)
      if (!one.capabilities.schedules) return t.skip('the store lacks schedules')
      t.diagnostic(`seed ${SEED}`)
      await inAllOrders(
        async (path) => {
          await new Race(one, other, `f${process.pid}.${++count}`).run(path)
          return true
        },
        { most: MOST_ORDERS, random: seeded(SEED) },
      )
    })
  })
}

class Race {
  readonly #one: Store
  readonly #other: Store
  readonly #queue: string
  readonly #schedulers = new Map<Store, Scheduler>()
  readonly #ran: string[] = []
  readonly #turns = new Turns()

  constructor(one: Store, other: Store, queue: string) {
    this.#one = one
    this.#other = other
    this.#queue = queue
  }

  async run(path: Path): Promise<void> {
    const [all, keyed] = [`${this.#queue} all`, `${this.#queue} keyed`]
    const { operations } = this.#one
    await operations.configure({ queue: this.#queue, capacity: CAPACITY, keepDone: 0 })
    await operations.declare({ schedules: [declaration(this.#queue, all, null), declaration(this.#queue, keyed, KEY)] })
    await this.#look(this.#one)
    const first = (Math.floor(clock.now / EVERY) + 1) * EVERY
    clock.now = first + (MISSED - 1) * EVERY
    const now = clock.now

    const turnsOf = [this.#one, this.#other, this.#other, this.#one].map((store, at) => this.#turns.of(store, at))
    const [looks, looksToo, works, pushes] = turnsOf as [Store, Store, Store, Store]
    const own = newJob({ queue: this.#queue, key: KEY })
    const sessions = [
      this.#look(looks),
      this.#look(looksToo),
      this.#work(works),
      pushes.operations.push({ jobs: [own] }),
    ]
    await this.#turns.race(path, sessions, () => this.#check(path))
    for (let left = MOST_LOOKS; left > 0; left--) {
      await this.#look(this.#one)
      await this.#check(path)
      while ((await this.#work(this.#one)) > 0);
    }

    const times = Array.from({ length: MISSED }, (_, at) => firingId(all, first + at * EVERY).id)
    const ran = this.#ran.filter((id) => id !== own.id && id !== firingId(keyed, now).id)
    assert.deepEqual(ran.sort(), times.sort(), `${path.order}: jobs of ${all}`)
    // The pushed one, that of the schedule, or one after the other.
    const keyedRan = this.#ran.length - ran.length
    assert.ok(keyedRan === 1 || keyedRan === 2, `${path.order}: ${keyedRan} jobs with the key ran`)
    for (const name of [all, keyed]) {
      const [record] = await operations.schedules({ limit: 1, name })
      assert.equal(record?.nextAt, now + EVERY, `${path.order}: ${name} has not come to its next time`)
      await operations.removeSchedule({ name })
    }
  }

  /** As the worker does: what a sweep tells of is fired, by one scheduler for each process. */
  async #look(store: Store): Promise<void> {
    const swept = await store.operations.sweep(LIMIT)
    const scheduler = this.#schedulers.get(store) ?? new Scheduler(store, () => {})
    this.#schedulers.set(store, scheduler)
    if (swept.schedules !== null) await scheduler.fire(swept.schedules)
  }

  /** @returns how many jobs ran */
  async #work({ operations }: Store): Promise<number> {
    const { jobs } = await operations.claim({ ...CLAIM, queue: this.#queue, limit: 2 })
    await operations.complete({ queue: this.#queue, items: jobs.map((job) => ({ ...job, result: null })) })
    this.#ran.push(...jobs.map(({ id }) => id))
    return jobs.length
  }

  async #check({ order }: Path): Promise<void> {
    const { operations } = this.#one
    const [stats] = await operations.stats({ queue: this.#queue })
    const { waiting = 0, running = 0 } = stats?.counts ?? {}
    assert.ok(waiting <= CAPACITY, `${order}: ${waiting} jobs wait, and there is room for ${CAPACITY}`)
    const states = ['waiting', 'running'] as const
    const pages = await Promise.all(states.map((state) => operations.list({ queue: this.#queue, state, limit: 100 })))
    const keyed = pages.flatMap(({ jobs }) => jobs).filter(({ key }) => key === KEY)
    assert.ok(keyed.length <= 1, `${order}: ${keyed.length} of ${waiting + running} jobs hold the key`)
  }
}
