/**
 * Many claims at once on groups of all priorities, while jobs are pushed, fail, are given back and cancelled: no group runs more than it may, and none
 * is passed over for good. MILLPOND_FAULT_SEED sets what happens to them.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { after } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { ERROR, newJob } from '../support/jobs.ts'
import { BOUND } from '../support/until.ts'
import { seeded } from './harness.ts'
import { DURABLE_STORES } from './places.ts'

const JOBS = depth(500, 6000)
const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const CLAIMERS = 6
const PUSHERS = 2
/** Most jobs of a push. */
const MOST_PUSHED = 8
/** Groups that get jobs all the time. */
const LASTING = 40
/** Groups that get jobs for a while only: so many at a time, and one is followed by another each so many jobs. One that is passed over stays so. */
const SHORT = 8
const JOBS_OF_SHORT = 40
const LIMIT = 2
const QUEUE = 'q'

class Scene {
  readonly #stores: readonly Store[]
  readonly #random: () => number
  /** Jobs that are not done, dead or cancelled. */
  readonly #open = new Set<string>()
  /** By group, those between the answer of their claim and the first call that may end them: at no time more than run in the store. */
  readonly #running = new Map<string, Set<string>>()
  readonly #cancelled = new Set<string>()
  #pushed = 0
  #changed = performance.now()
  most = 0

  constructor(stores: readonly Store[], random: () => number) {
    this.#stores = stores
    this.#random = random
  }

  async run(): Promise<void> {
    const each = (count: number, work: (store: Store) => Promise<void>) =>
      Array.from({ length: count }, (_, n) => work(this.#stores[n % this.#stores.length] as Store))
    await Promise.all([
      ...each(PUSHERS, (store) => this.#push(store)),
      ...each(CLAIMERS, (store) => this.#claim(store)),
    ])
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #group(): string {
    if (this.#below(4) === 0) return `lasts-${this.#below(LASTING)}`
    return `short-${Math.floor(this.#pushed / JOBS_OF_SHORT) + this.#below(SHORT)}`
  }

  async #push(store: Store): Promise<void> {
    while (this.#pushed < JOBS) {
      const jobs = Array.from({ length: 1 + this.#below(MOST_PUSHED) }, () =>
        newJob({ queue: QUEUE, group: this.#group(), priority: this.#below(10), attempts: 1000 }),
      )
      this.#pushed += jobs.length
      for (const { id } of jobs) this.#open.add(id)
      await store.operations.push({ jobs })
      const [first] = jobs
      if (first !== undefined && this.#below(10) === 0) await this.#cancel(store, first)
    }
  }

  async #cancel(store: Store, job: { id: string; group: string | null }): Promise<void> {
    this.#cancelled.add(job.id)
    this.#ends(job)
    const [outcome] = await store.operations.cancel({ ids: [job.id] })
    if (outcome === 'cancelled') this.#open.delete(job.id)
  }

  async #claim(store: Store): Promise<void> {
    while (this.#pushed < JOBS || this.#open.size > 0) {
      const limit = 1 + this.#below(60)
      const minPriority = this.#below(3) === 0 ? this.#below(10) : 0
      const { jobs } = await store.operations.claim({ queue: QUEUE, worker: 'w', limit, minPriority, lease: 600_000 })
      for (const job of jobs) this.#runs(job)
      if (jobs.length === 0) {
        const silent = performance.now() - this.#changed
        assert.ok(silent < BOUND, `${this.#open.size} jobs wait, and no claim has brought any of them for ${silent} ms`)
        await sleep(2)
        continue
      }
      this.#changed = performance.now()
      await this.#end(store, jobs)
    }
  }

  #runs({ id, group }: ClaimedJob): void {
    if (this.#cancelled.has(id)) return
    const running = this.#running.get(group ?? '') ?? new Set()
    this.#running.set(group ?? '', running.add(id))
    this.most = Math.max(this.most, running.size)
  }

  #ends({ id, group }: { id: string; group: string | null }): void {
    this.#running.get(group ?? '')?.delete(id)
  }

  /** Most are completed, the others fail, are given back or cancelled: in calls of their own, one after the other. */
  async #end(store: Store, jobs: readonly ClaimedJob[]): Promise<void> {
    const parts: ClaimedJob[][] = [[], [], [], []]
    for (const job of jobs) parts[Math.max(0, this.#below(12) - 8)]?.push(job)
    const [done = [], failed = [], released = [], cancelled = []] = parts
    const holds = (ended: readonly ClaimedJob[]) =>
      ended.map((claim) => {
        this.#ends(claim)
        return { id: claim.id, fence: claim.fence, claim }
      })
    const outcomes = await store.operations.complete({
      queue: QUEUE,
      items: holds(done).map((hold) => ({ ...hold, result: null })),
    })
    for (const [n, { id }] of done.entries()) if (outcomes[n] === 'ok') this.#open.delete(id)
    await store.operations.fail({
      queue: QUEUE,
      items: holds(failed).map((hold) => ({ ...hold, error: ERROR, delay: 0 })),
    })
    await store.operations.release({ queue: QUEUE, items: holds(released) })
    for (const job of cancelled) await this.#cancel(store, job)
  }
}

for (const [name, urlOf] of Object.entries(DURABLE_STORES)) {
  test(`${name}: claims at once keep the limits of groups, and pass none over`, async (t) => {
    const url = await urlOf(t)
    if (url === undefined) return
    const stores = await Promise.all(Array.from({ length: 3 }, () => openStore(url, {})))
    after(t, () => Promise.all(stores.map((store) => store.close())))
    await stores[0]?.operations.configure({ queue: QUEUE, capacity: null, groupRunning: LIMIT })
    const scene = new Scene(stores, seeded(SEED))
    await scene.run()
    t.diagnostic(`${name}: seed ${SEED}, most of a group at once ${scene.most}`)
    assert.ok(scene.most <= LIMIT, `${scene.most} of a group at once`)
    const [stats] = (await stores[0]?.operations.stats({ queue: QUEUE })) ?? []
    assert.deepEqual([stats?.counts.waiting, stats?.counts.running, stats?.groupsAtLimit], [0, 0, 0])
  })
}
