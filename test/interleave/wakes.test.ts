/**
 * The wake contract: a process got no job and sleeps. Whatever lets a job start then either notifies it, or lies before the `retryAfter` that it was told.
 * The process here claims when it is notified or when that time has come, and never by itself. Another process does what happens.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Store } from '../../src/store.ts'
import type { Hold, NewJob } from '../../src/values/jobs/records.ts'
import type { QueueSettings } from '../../src/values/settings/settings.ts'
import { ERROR, newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { PLACES, type Processes } from './processes.ts'
import { clock } from './world.ts'

/** In ms, of the other process. */
const LEASE = 1000

/** Claims when it is to, and holds what it gets. */
class Sleeper {
  readonly #store: Store
  readonly #queue: string
  readonly #stop: () => void
  #rung = false
  #claiming = false
  /** Until it sleeps it hears nothing; but then it has been listening for a while. */
  #sleeps = false
  #error: unknown
  retryAt: number | undefined
  got = 0

  constructor(store: Store, queue: string) {
    this.#store = store
    this.#queue = queue
    this.#stop = store.listen(({ kind, queue }) => {
      if (kind === 'work' && queue === this.#queue) this.claim()
    })
  }

  claim(): void {
    if (!this.#sleeps) return
    this.#rung = true
    if (!this.#claiming) void this.#loop().catch((error: unknown) => (this.#error = error))
  }

  async #loop(): Promise<void> {
    this.#claiming = true
    while (this.#rung) {
      this.#rung = false
      const { jobs, retryAfter } = await this.#store.operations.claim({
        queue: this.#queue,
        worker: 'sleeper',
        limit: 10,
        lease: 60_000,
      })
      this.got += jobs.length
      this.retryAt = retryAfter === null ? undefined : clock.now + retryAfter
    }
    this.#claiming = false
  }

  /** It has claimed in vain, and nothing is on its way to it. */
  async sleeps(): Promise<void> {
    this.looks()
    for (let calm = 0; calm < 5; calm = this.#claiming ? 0 : calm + 1)
      await this.#store.operations.stats({ queue: this.#queue })
    assert.equal(this.got, 0, 'it was to get nothing')
  }

  /** It claims, and the answer may be long in coming. */
  looks(): void {
    this.#sleeps = true
    this.claim()
  }

  async getsAJob(): Promise<void> {
    await until(() => {
      if (this.#error !== undefined) throw this.#error
      if (this.retryAt !== undefined && this.retryAt <= clock.now && !this.#claiming) this.claim()
      return this.got > 0
    }, 'the process is told of the job')
  }

  close(): void {
    this.#stop()
  }
}

interface Scene {
  queue: string
  other: Store
  /** Claimed by the other process before the sleeper looks. */
  held: Hold[]
}

interface Event {
  settings?: Omit<QueueSettings, 'queue'>
  /** Pushed, and as many of them claimed by the other process. */
  jobs?: Partial<NewJob>[]
  claims?: number
  /** Before the sleeper looks. */
  before?: (scene: Scene) => Promise<unknown>
  happens: (scene: Scene) => Promise<unknown>
}

const TWO = [{ group: 'a' }, { group: 'a' }]
const RUNNING = { running: 1 } as const
const GROUP = { groupRunning: 1 } as const
const RATE = { count: 1, per: 10_000, burst: 1 } as const
const results = (held: readonly Hold[]) => held.map((hold) => ({ ...hold, result: null }))
const failures = (held: readonly Hold[], delay: number | null) => held.map((hold) => ({ ...hold, error: ERROR, delay }))

async function passes(ms: number, { other }: Scene): Promise<void> {
  clock.now += ms
  // As every process with workers does once a second, or sooner where the sweep before has told so.
  await other.operations.sweep({ limit: 100 })
}

const EVENTS: Record<string, Event> = {
  'a push': { happens: ({ other, queue }) => other.operations.push({ jobs: [newJob({ queue })] }) },
  'a push to a queue with groups': {
    settings: GROUP,
    happens: ({ other, queue }) => other.operations.push({ jobs: [newJob({ queue, group: 'b' })] }),
  },
  'a completion': {
    settings: RUNNING,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.complete({ queue, items: results(held) }),
  },
  'a completion in a group': {
    settings: GROUP,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.complete({ queue, items: results(held) }),
  },
  'a failure': {
    settings: GROUP,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, 0) }),
  },
  'a failure without limits': {
    jobs: TWO.slice(1),
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, 0) }),
  },
  'a failure for later frees its slot': {
    ...{ settings: RUNNING, jobs: TWO, claims: 1 },
    happens: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, 60_000) }),
  },
  'a failure for later frees its slot in a group': {
    ...{ settings: GROUP, jobs: TWO, claims: 1 },
    happens: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, 60_000) }),
  },
  'a failure for good': {
    settings: GROUP,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, null) }),
  },
  'a failed job is due': {
    ...{ jobs: TWO.slice(1), claims: 1 },
    async happens(scene) {
      await scene.other.operations.fail({ queue: scene.queue, items: failures(scene.held, 100) })
      await passes(100, scene)
    },
  },
  'a release': {
    jobs: TWO.slice(1),
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.release({ queue, items: held }),
  },
  'a release in a group': {
    settings: GROUP,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue, held }) => other.operations.release({ queue, items: held }),
  },
  'a cancelled job': {
    settings: RUNNING,
    jobs: TWO,
    claims: 1,
    happens: ({ other, held }) => other.operations.cancel({ ids: held.map(({ id }) => id) }),
  },
  'a cancelled job of a group': {
    ...{ settings: GROUP, jobs: TWO, claims: 1 },
    happens: ({ other, held }) => other.operations.cancel({ ids: held.map(({ id }) => id) }),
  },
  'a removed job': {
    ...{ settings: RUNNING, jobs: TWO, claims: 1 },
    happens: ({ other, held }) => other.operations.remove({ ids: held.map(({ id }) => id) }),
  },
  'a removed job of a group': {
    ...{ settings: GROUP, jobs: TWO, claims: 1 },
    happens: ({ other, held }) => other.operations.remove({ ids: held.map(({ id }) => id) }),
  },
  'an update': {
    jobs: [{ delay: 60_000 }],
    happens: (scene) => updateScheduled(scene),
  },
  'an update in a group': {
    ...{ settings: GROUP, jobs: [{ delay: 60_000, group: 'a' }] },
    happens: (scene) => updateScheduled(scene),
  },
  'a restored job': {
    ...{ jobs: TWO.slice(1), claims: 1 },
    async happens({ other, held }) {
      const ids = held.map(({ id }) => id)
      const found = await other.operations.find({ ids })
      await other.operations.remove({ ids })
      const records = found.flatMap((record) => (record === null ? [] : [{ ...record, state: 'waiting' as const }]))
      await other.operations.restore({ records })
    },
  },
  'a lost lease': { settings: GROUP, jobs: TWO, claims: 1, happens: (scene) => passes(LEASE, scene) },
  'a requeued job': {
    ...{ jobs: TWO.slice(1), claims: 1 },
    before: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, null) }),
    happens: ({ other, held }) => other.operations.requeue({ ids: held.map(({ id }) => id) }),
  },
  'a job requeued in bulk': {
    ...{ jobs: TWO.slice(1), claims: 1 },
    before: ({ other, queue, held }) => other.operations.fail({ queue, items: failures(held, null) }),
    happens: ({ other, queue }) =>
      other.operations.bulk({ queue, state: 'dead', change: { kind: 'requeue' }, limit: 10 }),
  },
  'a resumed queue': {
    ...{ settings: { paused: true }, jobs: TWO },
    happens: ({ other, queue }) => other.operations.configure({ queue, paused: false }),
  },
  'a raised limit': {
    settings: RUNNING,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue }) => other.operations.configure({ queue, running: 2 }),
  },
  'a limit without end': {
    settings: RUNNING,
    jobs: TWO,
    claims: 1,
    happens: ({ other, queue }) => other.operations.configure({ queue, running: null }),
  },
  'a raised limit of groups': {
    ...{ settings: GROUP, jobs: TWO, claims: 1 },
    happens: ({ other, queue }) => other.operations.configure({ queue, groupRunning: 2 }),
  },
  'a raised limit of one group': {
    ...{ settings: GROUP, jobs: TWO, claims: 1 },
    happens: ({ other, queue }) =>
      other.operations.limitGroup?.({ queue, group: 'a', limits: { running: 2, rate: null, weight: 1 } }) ??
      Promise.reject(),
  },
  'a rate without end': {
    ...{ settings: { rate: RATE }, jobs: TWO, claims: 1 },
    happens: ({ other, queue }) => other.operations.configure({ queue, rate: null }),
  },
  'a rate of groups without end': {
    ...{ settings: { groupRate: RATE }, jobs: TWO, claims: 1 },
    happens: ({ other, queue }) => other.operations.configure({ queue, groupRate: null }),
  },
  'a job is due': { jobs: [{ delay: 100 }], happens: (scene) => passes(100, scene) },
  'a rate allows a start': {
    settings: { rate: RATE },
    jobs: TWO,
    claims: 1,
    happens: (scene) => passes(10_000, scene),
  },
  'a rate of groups allows a start': {
    ...{ settings: { groupRate: RATE }, jobs: TWO, claims: 1 },
    happens: (scene) => passes(10_000, scene),
  },
  'a pause is over': {
    ...{ settings: { grouped: true }, jobs: TWO.slice(1), claims: 1 },
    before: ({ other, queue, held }) =>
      other.operations.release({ queue, items: held.map((hold) => ({ ...hold, pause: 500 })) }),
    happens: (scene) => passes(500, scene),
  },
}

/** Makes all that is scheduled due. */
async function updateScheduled({ other, queue }: Scene): Promise<unknown> {
  const { jobs } = await other.operations.list({ queue, state: 'scheduled', limit: 10 })
  return other.operations.update({ items: jobs.map(({ id }) => ({ id, delay: 0 })) })
}

for (const { name, skip, open } of PLACES) {
  describe(`wakes: ${name}`, { skip }, () => {
    let processes: Processes
    let queues = 0
    before(async () => {
      processes = await open(2)
    })
    after(() => processes.close())

    /** A queue of its own, what happens in it before the process looks, and the process. */
    async function scene(given: Omit<Event, 'happens'>, body: (scene: Scene, sleeper: Sleeper) => Promise<unknown>) {
      const { settings, jobs = [], claims = 0 } = given
      const queue = `q${++queues}`
      const [other, asleep = other] = processes.stores
      assert.ok(other !== undefined && asleep !== undefined)
      const sleeper = new Sleeper(asleep, queue)
      try {
        // A name alone makes no queue.
        await other.operations.configure({ queue, attempts: 3, ...settings })
        if (jobs.length > 0) await other.operations.push({ jobs: jobs.map((job) => newJob({ queue, ...job })) })
        const { jobs: held } = await other.operations.claim({
          queue,
          worker: 'other',
          limit: Math.max(claims, 1),
          lease: LEASE,
        })
        assert.equal(held.length, claims)
        await given.before?.({ queue, other, held })
        await body({ queue, other, held }, sleeper)
      } finally {
        sleeper.close()
      }
    }

    for (const [what, event] of Object.entries(EVENTS)) {
      test(`${what} wakes a process that sleeps`, () =>
        scene(event, async (at, sleeper) => {
          await sleeper.sleeps()
          await event.happens(at)
          await sleeper.getsAJob()
        }))
    }

    const hasTransactions = name === 'sqlite' || name === 'postgres'
    for (const settings of [{}, GROUP]) {
      const title = `a push that was not committed when the process looked wakes it: ${JSON.stringify(settings)}`
      test(title, { skip: !hasTransactions && 'a push cannot be part of a transaction' }, () =>
        scene({ settings }, async ({ queue, other }, sleeper) => {
          const caller = await processes.begin?.(other)
          assert.ok(caller !== undefined)
          await caller.push([newJob({ queue, group: 'a' })])
          // SQLite has one writer: there it may wait for the end of the transaction.
          if (name === 'postgres') await sleeper.sleeps()
          else sleeper.looks()
          await caller.commit()
          await caller.close()
          await sleeper.getsAJob()
        }),
      )
    }
  })
}
