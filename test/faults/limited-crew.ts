/**
 * Processes that work off one queue with limits and groups, of which some are killed and replaced. Who ran what is judged by what the jobs
 * themselves have written into a ledger.
 */

import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Millpond, type Queue, type QueueOptions } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, start } from './harness.ts'
import { Ledger, line } from './ledger.ts'
import type { LimitedConfig } from './roles/limited.ts'

const QUEUE = 'jobs'

export interface LimitedCrewOptions {
  url: string
  processes: number
  groups: readonly string[]
  /** Most jobs of the queue and of a group at once. */
  running: number
  groupRunning: number
  options: QueueOptions
  work: Pick<LimitedConfig, 'work' | 'takes' | 'fails' | 'pauses' | 'pause'>
}

export class LimitedCrew {
  readonly ledger: Ledger
  readonly queue: Queue<string>
  readonly ids: string[] = []
  kills = 0
  readonly #options: LimitedCrewOptions
  readonly #path: string
  readonly #start: () => Child
  readonly #all: Child[] = []
  #living: Child[] = []

  static async open(t: TestContext, options: LimitedCrewOptions): Promise<LimitedCrew> {
    const pond = await Millpond.open(options.url)
    after(t, () => pond.close())
    return new LimitedCrew(t, pond.queue<string>(QUEUE, options.options), options)
  }

  private constructor(t: TestContext, queue: Queue<string>, options: LimitedCrewOptions) {
    const { url, groups, groupRunning, work } = options
    this.queue = queue
    this.#options = options
    this.#path = join(scratch(t), 'ledger')
    this.ledger = new Ledger(this.#path, groups, groupRunning)
    const config: LimitedConfig = { url, queue: QUEUE, options: options.options, ledger: this.#path, ...work }
    this.#start = () => start(t, 'limited', config)
  }

  /** Starts as many processes as are missing. */
  fill(): void {
    while (this.#living.length < this.#options.processes) {
      const child = this.#start()
      this.#living.push(child)
      this.#all.push(child)
    }
  }

  /** @param groups one for each job @param priorityOf of a job, by its number in the list; 4 unless given */
  async push(groups: readonly string[], priorityOf: (n: number) => number = () => 4): Promise<void> {
    const each = (group: string, n: number) => ({ group, priority: priorityOf(n) })
    for (const { id } of await this.queue.pushMany(groups, { each })) this.ids.push(id)
  }

  /** A process that has had jobs is killed, and another one started. */
  async kill(random: () => number): Promise<void> {
    let busy: Child[] = []
    await until(() => {
      busy = this.#living.filter((child) => child.said('busy').length > 0)
      return busy.length > 0
    }, 'a process is at work')
    const victim = busy[Math.floor(random() * busy.length)]
    assert.ok(victim)
    victim.kill('SIGKILL')
    appendFileSync(this.#path, line('killed', victim.pid))
    this.kills++
    this.#living = this.#living.filter((child) => child !== victim)
    this.fill()
    await victim.exited
  }

  assertAlive(): void {
    for (const child of this.#living) if (!child.alive) throw new Error(`a process ended by itself\n${child.words}`)
  }

  /** All is done, with nobody killed any more; then the processes close. As long as jobs start, none is stuck. */
  async settle(): Promise<void> {
    let last = -1
    for (let starts = 0; starts !== last; ) {
      last = starts
      await until(async () => {
        this.assertAlive()
        starts = this.ledger.read().starts
        const { counts } = await this.queue.stats()
        return counts.scheduled + counts.waiting + counts.running === 0 || starts > last + this.ids.length
      }, 'everything is done, or goes on')
    }
    for (const child of this.#living) child.send({ kind: 'close' })
    await Promise.all(this.#all.map((child) => child.exited))
    this.ledger.read()
  }

  /** What holds whatever happened: the limits were kept, no job is lost, and by the store's own counts no slot is taken any more. */
  async judge(t: TestContext, more: Record<string, unknown>): Promise<void> {
    const { ledger, ids, kills } = this
    const said = (kind: string) => this.#all.reduce((sum, child) => sum + child.said(kind).length, 0)
    const figures = {
      ...{ kills, jobs: ids.length, starts: ledger.starts, 'back again': ledger.backs, 'cut short': ledger.cut },
      ...{ 'done twice': ledger.ends - ledger.ended.size, 'most of a group': ledger.most },
      ...{ 'most in all': ledger.mostInAll, stale: said('stale'), trouble: said('trouble'), ...more },
    }
    const words = Object.entries(figures).map(([name, figure]) => `${name} ${figure}`)
    t.diagnostic(words.join(', '))

    assert.ok(ledger.most <= this.#options.groupRunning, `${ledger.most} of a group at once`)
    assert.ok(ledger.mostInAll <= this.#options.running, `${ledger.mostInAll} at once`)
    assert.deepEqual(
      ids.filter((id) => !ledger.ended.has(id)),
      [],
      'lost',
    )
    assert.equal(ledger.ended.size, ids.length)
    assert.equal(said('dead'), 0)
    const { counts } = await this.queue.stats()
    assert.deepEqual([counts.scheduled, counts.waiting, counts.running, counts.done], [0, 0, 0, ids.length])
    const groups = await this.queue.groups({ limit: 1000 })
    assert.deepEqual(
      groups.filter(({ running }) => running !== 0),
      [],
    )
  }
}
