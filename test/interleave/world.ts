/** One queue, and what the sessions of a race know of it. */

import type { ClaimedJob, Hold, NewEntry, NewJob, Once } from '../../src/values/jobs/records.ts'
import type { Config } from './configs.ts'

/** A process that got no job and sleeps. */
export interface Sleeper {
  /** When its claim began. */
  at: number
  /** How many bells it had heard by then. */
  told: number
  retryAfter: number | null
  /** It was told to ask once more at once. */
  again: boolean
}

/** The store's clock in all races: it only goes on. */
export const clock = { now: Date.now() }

/** The key of all jobs that have one. */
export const KEY = 'k'

let ids = 0

/** In the order of making, and never the same twice on a server. */
function newId(): string {
  const rest = `${process.pid.toString(16).padStart(6, '0')}${(++ids).toString(16).padStart(9, '0')}`
  const time = clock.now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(3)}`
}

export class World {
  readonly queue: string
  readonly config: Config
  /** Claims that nobody has begun to end, oldest first. */
  readonly held: Hold[] = []
  /** Claims that have not been ended for all who look, oldest first. */
  #running: Hold[] = []
  readonly pushed: string[] = []
  readonly cancelled: string[] = []
  /** undefined: no process sleeps. */
  sleeper: Sleeper | undefined
  /** Its limits have been changed. */
  changed = false
  /** Jobs may have ended otherwise than done. */
  failed = false
  /** Due times may have been moved. */
  delayed = false
  /** Entries of workers may be gone. */
  forgot = false
  /** Entries that a store has acknowledged. */
  readonly entries: { id: string; name: string }[] = []
  #names = 0
  /** Claims of one job by two claims at once, and other things that must not be. */
  readonly faults: string[] = []
  /** How many bells of work for the queue have come. */
  readonly told: () => Promise<number>
  /** Of the queue's schedule: its version, and the time that it has come to. */
  version = '1'
  scheduledAt = 0
  /** Jobs of firings that were refused. */
  readonly unfired: string[] = []
  readonly #firedAt = new Set<number>()
  readonly #claims = new Set<string>()

  /** Whether jobs can wait for others. */
  readonly graphs: boolean

  constructor(queue: string, config: Config, graphs: boolean, told: () => Promise<number>) {
    this.graphs = graphs
    this.queue = queue
    this.config = config
    this.told = told
  }

  get now(): number {
    return clock.now
  }

  pass(ms: number): void {
    clock.now += ms
  }

  job({ group, priority }: { group: string; priority: number }): NewJob {
    return {
      ...{ id: newId(), queue: this.queue, priority, delay: 0, runAt: null, key: null, group, attempts: 1000 },
      ...{ timeout: null, trace: null, data: { encoding: 'json', body: '1' } as const, fresh: true },
    }
  }

  /** A job that waits for others; those of a high priority run whatever becomes of them. */
  child(given: { group: string; priority: number }, after: readonly string[]): NewJob {
    const onDead = given.priority > 4 ? 'run' : 'cancel'
    return { ...this.job(given), ...(this.graphs && { after, onDead }) }
  }

  /** A part of the work of another one. */
  part(given: { group: string; priority: number }, partOf: string | undefined): NewJob {
    return { ...this.job(given), ...(this.graphs && partOf !== undefined && { partOf }) }
  }

  /** One of the jobs that share a key. */
  keyed(given: { group: string; priority: number }, once?: Once): NewJob {
    return { ...this.job(given), key: KEY, ...(once && { once }) }
  }

  /** Removes the claims that are held longest. */
  take(most: number): Hold[] {
    return this.held.splice(0, most)
  }

  hold(jobs: readonly ClaimedJob[]): void {
    for (const { id, fence } of jobs) {
      const claim = `${id} ${fence}`
      if (this.#claims.has(claim)) this.faults.push('one claim given twice')
      this.#claims.add(claim)
      this.held.push({ id, fence })
      this.#running.push({ id, fence })
    }
  }

  entryName(kind: string): string {
    return `${kind}${++this.#names}`
  }

  kept(id: string, entries: readonly Pick<NewEntry, 'name'>[]): void {
    this.entries.push(...entries.map(({ name }) => ({ id, name })))
  }

  declared(version: string): void {
    this.version = version
  }

  /** Of two firings that expect the same time, one is heard. */
  fired(id: string, expected: number, isFired: boolean): void {
    if (!isFired) {
      this.unfired.push(id)
      return
    }
    if (this.#firedAt.has(expected)) this.faults.push('a time fired twice')
    this.#firedAt.add(expected)
    this.scheduledAt = Math.max(this.scheduledAt, expected + 1)
    this.pushed.push(id)
  }

  ended(holds: readonly Hold[]): void {
    this.#running = this.#running.filter(
      ({ id, fence }) => !holds.some((hold) => hold.id === id && hold.fence === fence),
    )
  }

  /** Of the first so many claims that run, also of those that are just being ended. */
  newestFirst(count: number): Hold[] {
    return this.#running.slice(0, count).reverse()
  }
}
