/** All that an open memory store holds. */

import { MillpondError } from '../../values/errors/errors.ts'
import type { Hold } from '../../values/jobs/records.ts'
import { Bells } from '../bells.ts'
import { Graph } from './graph.ts'
import { IdIndex } from './id-index.ts'
import { Claim, type Job, ORIGIN } from './job.ts'
import { MemoryQueue } from './queue.ts'
import { Schedules } from './schedules.ts'
import { Tick } from './tick.ts'
import { Workers } from './workers.ts'

export class MemoryState {
  readonly jobs = new IdIndex<Job>()
  readonly queues = new Map<string, MemoryQueue>()
  readonly workers = new Workers()
  readonly schedules = new Schedules()
  readonly graph = new Graph(this)
  readonly bells = new Bells()
  readonly tick = new Tick()
  /** How many jobs were ever pushed. */
  places = 0
  /** Above the fences of all jobs that were removed. Pushes begin here, as a job with such an id may be pushed again. */
  removedFence = 0
  readonly #clock: () => number
  #closed = false

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Milliseconds since `ORIGIN`. `trunc` makes V8 keep a small integer from the first call on. */
  now(): number {
    return Math.trunc(this.#clock() - ORIGIN)
  }

  /** The job of a claim that still holds. */
  held(queue: string, { id, fence, claim }: Hold): Job | undefined {
    const holds = (job: Job | undefined) => job?.state === 'running' && job.fence === fence && job.queue === queue
    // A look-up among many jobs costs as much as all else that is done here, so the claim's own word is taken first.
    if (claim instanceof Claim && claim.id === id && holds(claim.job)) return claim.job
    const job = this.jobs.get(id)
    return holds(job) ? job : undefined
  }

  findOrCreate(name: string): MemoryQueue {
    let queue = this.queues.get(name)
    if (queue === undefined) {
      queue = new MemoryQueue(name, this.jobs)
      this.queues.set(name, queue)
    }
    return queue
  }

  /**
   * A job has reached a final state: rings for those who wait for its result, and for workers that wait for its slot. The jobs that wait
   * for it are told at the end of the operation.
   */
  ended(queue: MemoryQueue, job: Job): void {
    this.graph.ended(job)
    this.bells.ring('finished', queue.name, job.id)
    // Its key may have gone to its follower, which is due.
    const hasFollower = job.key !== null && queue.keys.has(job.key)
    if (hasFollower || queue.hasLimits) this.bells.ring('work', queue.name)
  }

  /** @throws Closed */
  assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'The memory store is closed; open a new one to go on.')
  }

  close(): void {
    this.#closed = true
    this.bells.silence()
    this.queues.clear()
    this.jobs.clear()
  }
}
