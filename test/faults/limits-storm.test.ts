/**
 * Everything about limits at once: groups of three priorities, a limit of running jobs for the queue and for each group, a rate of each group, jobs that
 * fail and run again, jobs that pause their group, and 16 workers in four processes, of which one after the other is killed and replaced. The jobs
 * themselves count how many run at once. MILLPOND_FAULT_KILLS sets the kills per store, MILLPOND_FAULT_JOBS the jobs, MILLPOND_FAULT_SEED the victims.
 * With MILLPOND_FAULT_KILLS set, every storm runs on every store.
 */

import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Millpond, type QueueOptions } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { BOUND, until } from '../support/until.ts'
import { DURABLE_STORES } from './backends.ts'
import { type Child, seeded, start } from './harness.ts'
import { Ledger, line } from './ledger.ts'
import type { LimitedConfig } from './roles/limited.ts'

const KILLS = Number(process.env.MILLPOND_FAULT_KILLS ?? 2)
const JOBS = Number(process.env.MILLPOND_FAULT_JOBS ?? 150)
const SEED = Number(process.env.MILLPOND_FAULT_SEED ?? randomInt(2 ** 31))
const PROCESSES = 4
const WORKERS = 4
const GROUPS = Array.from({ length: 12 }, (_, n) => `g${n}`)
const PRIORITIES = [2, 4, 8]
const QUEUE = 'jobs'

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

class Crew {
  readonly all: Child[] = []
  readonly #add: () => Child
  #living: Child[]

  constructor(t: TestContext, config: LimitedConfig) {
    this.#add = () => {
      const child = start(t, 'limited', config)
      this.all.push(child)
      return child
    }
    this.#living = Array.from({ length: PROCESSES }, this.#add)
  }

  /** @returns the process that was killed, while it had jobs */
  async kill(random: () => number): Promise<number> {
    let busy: Child[] = []
    await until(() => {
      busy = this.#living.filter((child) => child.said('busy').length > 0)
      return busy.length > 0
    }, 'a process is at work')
    const victim = busy[Math.floor(random() * busy.length)]
    assert.ok(victim)
    victim.kill('SIGKILL')
    this.#living = [...this.#living.filter((child) => child !== victim), this.#add()]
    return victim.pid
  }

  assertAlive(): void {
    for (const child of this.#living) if (!child.alive) throw new Error(`a process ended by itself\n${child.words}`)
  }

  async close(): Promise<void> {
    for (const child of this.#living) child.send({ kind: 'close' })
    await Promise.all(this.all.map((child) => child.exited))
  }

  said(kind: string): number {
    return this.all.reduce((sum, child) => sum + child.said(kind).length, 0)
  }
}

async function storm(t: TestContext, url: string, { running, group, limits, pauses }: Storm): Promise<void> {
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const options: QueueOptions = { lease: 2000, retry: { attempts: 1000, backoff: { type: 'fixed', base: 20 } }, limits }
  const queue = pond.queue<string>(QUEUE, options)
  const path = join(scratch(t), 'ledger')
  const ledger = new Ledger(path, GROUPS, group)
  const names = Array.from({ length: JOBS }, (_, n) => GROUPS[n % GROUPS.length] ?? '')
  const each = (name: string, n: number) => ({ group: name, priority: PRIORITIES[n % PRIORITIES.length] ?? 4 })
  const ids: string[] = []
  const config: LimitedConfig = {
    ...{ url, queue: QUEUE, options, ledger: path, work: { concurrency: WORKERS } },
    ...{ takes: [0, 60] as const, fails: 0.1, pauses, pause: 50 },
  }
  const crew = new Crew(t, config)
  const random = seeded(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    const part = names.splice(0, JOBS / KILLS)
    ids.push(...(await queue.pushMany(part, { each })).map(({ id }) => id))
    await until(() => ledger.read().running > 0, 'jobs run')
    appendFileSync(path, line('killed', await crew.kill(random)))
  }
  let last = -1
  for (let starts = 0; starts !== last; ) {
    last = starts
    // As long as jobs start, none is stuck.
    await until(async () => {
      crew.assertAlive()
      starts = ledger.read().starts
      const { counts } = await queue.stats()
      return counts.scheduled + counts.waiting + counts.running === 0 || starts > last + JOBS
    }, 'everything is done, or goes on')
  }
  await crew.close()
  ledger.read()
  const figures = {
    ...{ jobs: ids.length, kills: KILLS, starts: ledger.starts, 'back again': ledger.backs, 'cut short': ledger.cut },
    ...{ 'most of a group': ledger.most, 'most in all': ledger.mostInAll, trouble: crew.said('trouble'), seed: SEED },
  }
  t.diagnostic(
    Object.entries(figures)
      .map(([name, figure]) => `${name} ${figure}`)
      .join(', '),
  )
  assert.ok(ledger.most <= group, `${ledger.most} of a group at once`)
  assert.ok(ledger.mostInAll <= running, `${ledger.mostInAll} at once`)
  assert.deepEqual(
    ids.filter((id) => !ledger.ended.has(id)),
    [],
    'lost',
  )
  assert.equal(crew.said('dead'), 0)
  const { counts } = await queue.stats()
  assert.deepEqual([counts.scheduled, counts.waiting, counts.running, counts.done], [0, 0, 0, ids.length])
}

for (const [store, urlOf] of Object.entries(DURABLE_STORES)) {
  for (const each of STORMS) {
    if (each !== STORMS[0] && store !== 'postgres' && process.env.MILLPOND_FAULT_KILLS === undefined) continue
    test(`${store}: ${each.name}, with kills: never more at once than may, none lost, none stuck`, {
      timeout: 4 * BOUND,
    }, async (t) => {
      const url = await urlOf(t)
      if (url !== undefined) await storm(t, url, each)
    })
  }
}
