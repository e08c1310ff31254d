/** Producers and workers on one server, each in a process of its own, and what they have noted. */

import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Millpond, type QueueOptions, type QueueReport } from '../../src/index.ts'
import { defined } from '../../src/values/options/options.ts'
import { scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, start } from './harness.ts'
import { Journal } from './journal.ts'
import type { ProducerConfig } from './roles/producer.ts'
import type { WorkerConfig } from './roles/worker.ts'

export const QUEUE = 'jobs'

/** What a process must get done after a fault to count as going on. */
const SOME = 5

export interface CrewOptions {
  /** Of the server itself: what the test looks through. */
  url: string
  transaction: boolean
  /** See the worker's. */
  table?: string
  producers?: number
  workers?: number
  /** Of the queue, besides a short lease and a capacity that keeps producers from running away. */
  options?: QueueOptions
  /** See the worker's; 10 unless set. */
  pause?: number
}

export interface Member {
  child: Child
  journal: Journal
}

export class Crew {
  readonly options: QueueOptions
  readonly all: Member[] = []
  producers: Member[] = []
  workers: Member[] = []
  /** Jobs per state once settled, as the store has them. */
  counts: QueueReport['counts'] | undefined
  readonly #t: TestContext
  readonly #folder: string
  readonly #url: string
  readonly #transaction: boolean
  readonly #table: string | undefined
  readonly #pause: number

  constructor(
    t: TestContext,
    { url, transaction, table, producers = 2, workers = 3, options, pause = 10 }: CrewOptions,
  ) {
    this.#t = t
    this.#folder = scratch(t)
    this.#url = url
    this.#transaction = transaction
    this.#table = table
    this.#pause = pause
    const retry = { attempts: 1000, backoff: { type: 'fixed', base: 50 } } as const
    this.options = { lease: '1s', capacity: 300, whenFull: 'wait', retry, ...options }
    for (let i = 0; i < producers; i++) this.addProducer()
    for (let i = 0; i < workers; i++) this.addWorker()
  }

  /** @param url another way to the server, such as a proxy */
  addProducer(url: string = this.#url): Member {
    const log = this.#log('acknowledged')
    const config: ProducerConfig = { url, queue: QUEUE, options: this.options, log, inFlight: 12, pause: 10 }
    const member = this.#add('producer', config, log)
    this.producers.push(member)
    return member
  }

  addWorker(url: string = this.#url): Member {
    const log = this.#log('worked')
    const work = { concurrency: 20, transaction: this.#transaction }
    const config: WorkerConfig = {
      ...{ url, queue: QUEUE, options: this.options, work, log, pause: this.#pause },
      ...defined({ table: this.#table }),
    }
    const member = this.#add('worker', config, log)
    this.workers.push(member)
    return member
  }

  #log(what: string): string {
    return join(this.#folder, `${what}-${this.all.length}`)
  }

  #add(role: string, config: object, log: string): Member {
    const member = { child: start(this.#t, role, config, { cwd: this.#folder }), journal: new Journal(log) }
    this.all.push(member)
    return member
  }

  get members(): Member[] {
    return [...this.producers, ...this.workers]
  }

  /** A test goes on only as long as every process does. */
  assertAlive(): void {
    for (const { child } of this.members) {
      if (!child.alive) throw new Error(`a ${child.role} ended by itself\n${child.words}`)
    }
  }

  /** Waits until all of them, or those named, have had their first success. */
  async atWork(members: readonly Member[] = this.members): Promise<void> {
    await until(() => {
      this.assertAlive()
      return members.every(({ child }) => child.said('busy').length > 0)
    }, 'all are at work')
  }

  /** Waits until every one of them has got something done from now on. */
  async goOn(members: readonly Member[] = this.members): Promise<void> {
    const goals = members.map((member) => ({ member, goal: successes(member) + SOME }))
    await until(() => {
      this.assertAlive()
      return goals.every(({ member, goal }) => successes(member) >= goal)
    }, 'all go on by themselves').catch((error: unknown) => {
      const stuck = goals.filter(({ member, goal }) => successes(member) < goal)
      const words = stuck.map(({ member: { child } }) => `${child.role} ${child.pid}: ${lastTroubles(child)}`)
      throw new Error(`${error}\n${words.join('\n')}`, { cause: error })
    })
  }

  /** Kills them and leaves their places empty. */
  async kill(victims: readonly Member[]): Promise<void> {
    for (const { child } of victims) child.kill('SIGKILL')
    this.producers = this.producers.filter((member) => !victims.includes(member))
    this.workers = this.workers.filter((member) => !victims.includes(member))
    await Promise.all(victims.map(({ child }) => child.exited))
  }

  /** No further pushes; once all is done the workers go as well. Every push must have settled by then. */
  async settle(): Promise<void> {
    await tell(this.producers, 'stop', 'stopped')
    const pond = await Millpond.open(this.#url)
    try {
      const queue = pond.queue(QUEUE)
      await until(async () => {
        this.assertAlive()
        const { counts } = await queue.stats()
        return counts.scheduled + counts.waiting + counts.running === 0
      }, 'everything is done')
      await tell(this.workers, 'close', 'closed')
      await Promise.all(this.workers.map(({ child }) => child.exited))
      this.counts = (await queue.stats()).counts
    } finally {
      await pond.close()
    }
  }
}

/** How many pushes of a producer were acknowledged, how many jobs of a worker are completed. */
export function successes({ child, journal }: Member): number {
  if (child.role === 'producer') return journal.lines.length
  return journal.count('completed')
}

async function tell(members: readonly Member[], order: string, answer: string): Promise<void> {
  for (const { child } of members) child.send({ kind: order })
  await Promise.all(members.map(({ child }) => child.hear(answer)))
}

const lastTroubles = (child: Child): string =>
  child
    .said('trouble')
    .slice(-3)
    .map(({ message }) => String(message))
    .join('; ')
