/**
 * Eight workers on the groups of one queue, of which each may run two jobs at once, are killed (SIGKILL) one each second and replaced. Who ran
 * what is judged by what the jobs themselves have written down. After each round of kills there is none until all groups run two jobs again.
 * MILLPOND_FAULT_KILLS sets the kills per store, MILLPOND_FAULT_SEED the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond, type Queue } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { DURABLE_STORES } from './backends.ts'
import { type Child, seeded, start } from './harness.ts'
import { Ledger, line } from './ledger.ts'
import type { LimitedConfig } from './roles/limited.ts'

const KILLS = Number(process.env.MILLPOND_FAULT_KILLS ?? 3)
const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const WORKERS = 8
const GROUPS = Array.from({ length: 50 }, (_, n) => `g${n}`)
const LIMIT = 2
const QUEUE = 'jobs'
const LEASE = 2000
const SWEEP = 1000
/** In milliseconds. */
const PACE = 1000
const KILLS_OF_A_ROUND = 6
/** Jobs of a group that wait at least, and how many are pushed together. Two jobs at once take this long to start them all. */
const BACKLOG = 30
/** What the machine may take to get round to what is due, in milliseconds; how long it did take is told. */
const GRACE = Number(process.env.MILLPOND_FAULT_GRACE ?? 5000)
const OPTIONS = { lease: LEASE, retry: { attempts: 1000 }, limits: { group: { running: LIMIT } } } as const

class Scene {
  readonly ledger: Ledger
  readonly #t: TestContext
  readonly #url: string
  readonly #path: string
  readonly #queue: Queue<string>
  readonly #random: () => number
  readonly #all: Child[] = []
  #workers: Child[] = []
  readonly pushed = new Map<string, string[]>(GROUPS.map((group) => [group, []]))
  kills = 0
  /** Per round, how long it took until all groups ran two jobs again, in milliseconds. */
  readonly recoveries: number[] = []

  constructor(t: TestContext, url: string, pond: Millpond, random: () => number) {
    this.#t = t
    this.#url = url
    this.#random = random
    this.#path = join(scratch(t), 'ledger')
    this.#queue = pond.queue<string>(QUEUE, OPTIONS)
    this.ledger = new Ledger(this.#path, GROUPS, LIMIT)
  }

  #add(): void {
    const config: LimitedConfig = {
      ...{ url: this.#url, queue: QUEUE, options: OPTIONS, ledger: this.#path },
      // Enough for all slots of all groups, with one worker killed and another one not there yet.
      work: { concurrency: 25 },
      takes: [50, 250],
    }
    const child = start(this.#t, 'limited', config)
    this.#workers.push(child)
    this.#all.push(child)
  }

  /** Jobs wait in every group. */
  async #fill(): Promise<void> {
    this.ledger.read()
    const short = GROUPS.filter(
      (group) => (this.pushed.get(group)?.length ?? 0) - this.ledger.startedOf(group) < BACKLOG,
    )
    const groups = short.flatMap((group) => Array.from({ length: BACKLOG }, () => group))
    if (groups.length === 0) return
    const made = await this.#queue.pushMany(groups, { each: (group) => ({ group }) })
    for (const [at, { id }] of made.entries()) this.pushed.get(groups[at] ?? '')?.push(id)
  }

  async #full(): Promise<number> {
    await until(async () => {
      await this.#fill()
      for (const child of this.#workers) if (!child.alive) throw new Error(`a worker ended by itself\n${child.words}`)
      return Number.isFinite(this.ledger.fullAfter)
    }, 'all groups run two jobs')
    return this.ledger.fullAfter
  }

  async rage(kills: number): Promise<void> {
    await this.#fill()
    while (this.#workers.length < WORKERS) this.#add()
    await this.#full()
    while (this.kills < kills) {
      const last = Math.min(kills, this.kills + KILLS_OF_A_ROUND)
      while (this.kills < last) {
        await Promise.all([sleep(PACE), this.#fill()])
        await this.#kill()
      }
      this.recoveries.push(await this.#full())
    }
  }

  async #kill(): Promise<void> {
    let busy: Child[] = []
    await until(() => {
      busy = this.#workers.filter((child) => child.said('busy').length > 0)
      return busy.length > 0
    }, 'a worker is at work')
    const victim = busy[Math.floor(this.#random() * busy.length)]
    assert.ok(victim)
    victim.kill('SIGKILL')
    appendFileSync(this.#path, line('killed', victim.pid))
    this.kills++
    this.#workers = this.#workers.filter((child) => child !== victim)
    this.#add()
    await victim.exited
  }

  /** What is left is done, with nobody killed any more. */
  async settle(): Promise<void> {
    await until(async () => {
      const { counts } = await this.#queue.stats()
      return counts.scheduled + counts.waiting + counts.running === 0
    }, 'everything is done')
    for (const child of this.#workers) child.send({ kind: 'close' })
    await Promise.all(this.#workers.map((child) => child.exited))
    this.ledger.read()
  }

  said(kind: string): number {
    return this.#all.reduce((sum, child) => sum + child.said(kind).length, 0)
  }

  /** Jobs that run by the store’s own counts, in all and by group. */
  async running(): Promise<number[]> {
    const { counts } = await this.#queue.stats()
    const groups = await this.#queue.groups({ limit: 1000 })
    return [counts.running, ...groups.map(({ running }) => running)]
  }
}

for (const [store, urlOf] of Object.entries(DURABLE_STORES)) {
  test(`${store}: never more of a group at once than may, and full use again after each kill`, async (t) => {
    const url = await urlOf(t)
    if (url === undefined) return
    const pond = await Millpond.open(url)
    after(t, () => pond.close())
    const scene = new Scene(t, url, pond, seeded(SEED))
    await scene.rage(KILLS)
    await scene.settle()

    const { ledger, kills, recoveries } = scene
    const ids = [...scene.pushed.values()].flat()
    const slowest = Math.max(...recoveries)
    const figures = {
      kills,
      jobs: ids.length,
      starts: ledger.starts,
      'cut short': ledger.cut,
      'done twice': ledger.ends - ledger.ended.size,
      'most at once': ledger.most,
      'full use after, ms': recoveries.map(Math.round).join(' '),
      stale: scene.said('stale'),
      trouble: scene.said('trouble'),
      seed: SEED,
    }
    t.diagnostic(
      `${store}: ${Object.entries(figures)
        .map(([name, figure]) => `${name} ${figure}`)
        .join(', ')}`,
    )

    assert.equal(ledger.most, LIMIT, 'jobs of a group at once')
    assert.deepEqual(
      ids.filter((id) => !ledger.ended.has(id)),
      [],
      'lost',
    )
    assert.equal(ledger.ended.size, ids.length)
    assert.equal(scene.said('dead'), 0)
    assert.deepEqual(
      (await scene.running()).filter((running) => running !== 0),
      [],
    )
    assert.ok(slowest <= LEASE + SWEEP + GRACE, `full use only after ${slowest} ms`)
    assert.ok(ledger.cut >= kills, 'the kills hit nothing')
  })
}
