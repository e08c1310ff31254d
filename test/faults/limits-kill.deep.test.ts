/**
 * Limits while processes are killed (SIGKILL) and replaced, on every durable store. MILLPOND_FAULT_SEED sets the victims.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import type { QueueOptions } from '../../src/index.ts'
import { depth } from '../support/depth.ts'
import { BOUND, until } from '../support/until.ts'
import { seeded } from './harness.ts'
import { LimitedCrew } from './limited-crew.ts'
import { DURABLE_STORES } from './places.ts'

const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const LEASE = 2000

/**
 * Processes on the groups of one queue, of which each may run two jobs at once. After each round of kills there is none until all
 * groups run two jobs again.
 */
async function fullUse(t: TestContext, url: string): Promise<void> {
  const kills = depth(1, 6)
  const sweep = 1000
  const killsPerRound = 6
  /** Jobs of a group that wait at least, and how many are pushed together. */
  const backlog = 20
  /** Starts between two kills. */
  const pace = 200
  /** What the machine may take to get round to what is due, in milliseconds; how long it did take is told. */
  const grace = 10_000
  const groups = Array.from({ length: 20 }, (_, n) => `g${n}`)
  const processes = 4
  const random = seeded(SEED)
  const crew = await LimitedCrew.open(t, {
    ...{ url, processes, groups, running: 2 * groups.length, groupRunning: 2 },
    options: { lease: LEASE, retry: { attempts: 1000 }, limits: { group: { running: 2 } } },
    // Enough for all slots of all groups, with one process killed and another one not there yet.
    work: { work: { concurrency: 25 }, takes: [50, 250] },
  })
  const { ledger } = crew
  const pushed = new Map(groups.map((group) => [group, 0]))

  /** Jobs wait in every group. */
  async function refill(): Promise<void> {
    crew.assertAlive()
    ledger.read()
    const short = groups.filter((group) => (pushed.get(group) ?? 0) - ledger.startedOf(group) < backlog)
    for (const group of short) pushed.set(group, (pushed.get(group) ?? 0) + backlog)
    if (short.length > 0) await crew.push(short.flatMap((group) => Array.from({ length: backlog }, () => group)))
  }

  /** @returns how long after the last kill all groups ran two jobs again, in milliseconds */
  async function full(): Promise<number> {
    await until(async () => {
      await refill()
      return Number.isFinite(ledger.fullAfter)
    }, 'all groups run two jobs')
    return ledger.fullAfter
  }

  const recoveries: number[] = []
  crew.fill()
  await full()
  while (crew.kills < kills) {
    const last = Math.min(kills, crew.kills + killsPerRound)
    while (crew.kills < last) {
      const goal = ledger.starts + pace
      await until(async () => {
        await refill()
        return ledger.starts >= goal
      }, 'jobs start')
      await crew.kill(random)
    }
    recoveries.push(await full())
  }
  await crew.settle()
  await crew.judge(t, { 'full use after, ms': recoveries.map(Math.round).join(' '), seed: SEED })
  assert.equal(ledger.most, 2)
  assert.ok(ledger.cut >= kills, 'the kills hit nothing')
  const slowest = Math.max(...recoveries)
  assert.ok(slowest <= LEASE + sweep + grace, `full use only after ${slowest} ms`)
}

interface Storm {
  name: string
  /** Most jobs of the queue and of a group at once. */
  running: number
  group: number
  limits: NonNullable<QueueOptions['limits']>
  pauses: number
}

const STORMS: readonly Storm[] = [
  {
    ...{ name: 'groups, pauses and rates', running: 12, group: 2, pauses: 0.05 },
    limits: { running: 12, group: { running: 2, rate: { count: 40, per: '1s', burst: 4 } } },
  },
  // Few slots for many: each is taken as soon as it is free, or somebody sleeps for nothing.
  { ...{ name: 'a few slots', running: 3, group: 1, pauses: 0 }, limits: { running: 3, group: { running: 1 } } },
]

/**
 * Everything about limits at once: groups of three priorities, a limit of running jobs for the queue and for each group, a rate of each
 * group, jobs that fail and run again, jobs that pause their group.
 */
async function storm(t: TestContext, url: string, { running, group, limits, pauses }: Storm): Promise<void> {
  const kills = depth(1, 3)
  const jobs = depth(50, 200)
  const groups = Array.from({ length: 12 }, (_, n) => `g${n}`)
  const priorities = [2, 4, 8]
  const random = seeded(SEED)
  const crew = await LimitedCrew.open(t, {
    ...{ url, processes: 4, groups, running, groupRunning: group },
    options: { lease: LEASE, retry: { attempts: 1000, backoff: { type: 'fixed', base: 20 } }, limits },
    work: { work: { concurrency: 4 }, takes: [0, 60], fails: 0.1, pauses, pause: 50 },
  })
  crew.fill()
  const names = Array.from({ length: jobs }, (_, n) => groups[n % groups.length] ?? '')
  while (crew.kills < kills) {
    await crew.push(names.splice(0, jobs / kills), (n) => priorities[n % priorities.length] ?? 4)
    await until(() => crew.ledger.read().running > 0, 'jobs run')
    await crew.kill(random)
  }
  await crew.settle()
  await crew.judge(t, { seed: SEED })
}

for (const [store, urlOf] of Object.entries(DURABLE_STORES)) {
  const timeout = 4 * BOUND
  const onStore = (title: string, check: (t: TestContext, url: string) => Promise<void>) =>
    test(title, { timeout }, async (t) => {
      const url = await urlOf(t)
      if (url !== undefined) await check(t, url)
    })
  describe(`${store}: never more at once than may, none lost, none stuck`, () => {
    onStore('full use again after each kill', fullUse)
    for (const each of STORMS) {
      onStore(each.name, (t, url) => storm(t, url, each))
    }
  })
}
