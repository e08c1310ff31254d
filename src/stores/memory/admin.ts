/** What people ask for: lists by state, and bringing jobs back. */

import type { JobRecord, ListRequest, StoreAdmin } from '../../store.ts'
import type { Job } from './job.ts'
import { byDue, type MemoryQueue } from './queue.ts'

/** What the store lends: its jobs and queues, and the check that it is open. */
export interface AdminAccess {
  readonly jobs: ReadonlyMap<string, Job>
  readonly queues: ReadonlyMap<string, MemoryQueue>
  now(): number
  assertOpen(): void
  woke(queue: MemoryQueue): void
}

export class MemoryAdmin implements StoreAdmin {
  readonly #store: AdminAccess

  constructor(store: AdminAccess) {
    this.#store = store
  }

  async list(request: ListRequest): Promise<JobRecord[]> {
    this.#store.assertOpen()
    const queue = this.#store.queues.get(request.queue)
    if (queue === undefined) return []
    const cursor = request.after === undefined ? null : this.#store.jobs.get(request.after)
    // A page after a job that has gone, has moved on to another state, or is of another queue has no place to begin.
    if (cursor === undefined || (cursor !== null && (cursor.state !== request.state || cursor.queue !== request.queue)))
      return []
    const page: JobRecord[] = []
    for (const job of jobsAfter(queue, request.state, cursor)) {
      if (page.length >= request.limit) break
      page.push(job.toRecord())
    }
    return page
  }

  async requeue(request: { ids: readonly string[] } | { queue: string; limit: number }): Promise<number> {
    this.#store.assertOpen()
    const now = this.#store.now()
    let count = 0
    for (const job of 'ids' in request ? this.#named(request.ids) : this.#dead(request.queue)) {
      if ('limit' in request && count >= request.limit) break
      const queue = this.#store.queues.get(job.queue)
      if (queue === undefined || (job.state !== 'dead' && job.state !== 'cancelled') || !queue.requeue(job, now))
        continue
      count++
      this.#store.woke(queue)
    }
    return count
  }

  *#named(ids: readonly string[]): Generator<Job> {
    for (const id of ids) {
      const job = this.#store.jobs.get(id)
      if (job !== undefined) yield job
    }
  }

  /** Oldest first. */
  *#dead(name: string): Generator<Job> {
    let job = this.#store.queues.get(name)?.finished.dead.first ?? null
    while (job !== null) {
      const next: Job | null = job.next
      yield job
      job = next
    }
  }
}

function jobsAfter(queue: MemoryQueue, state: ListRequest['state'], cursor: Job | null): Iterable<Job> {
  switch (state) {
    case 'waiting':
      return queue.waiting.after(cursor)
    case 'scheduled':
      return sortedAfter(queue.scheduled.all, byDue, cursor)
    case 'running':
      return sortedAfter(queue.running.all(), byLease, cursor)
    default:
      return backwards(cursor === null ? queue.finished[state].last : cursor.prev)
  }
}

const byLease = (a: Job, b: Job): boolean =>
  a.leaseUntil < b.leaseUntil || (a.leaseUntil === b.leaseUntil && a.place < b.place)

function sortedAfter(jobs: readonly Job[], before: (a: Job, b: Job) => boolean, cursor: Job | null): Job[] {
  const rest = cursor === null ? [...jobs] : jobs.filter((job) => before(cursor, job))
  return rest.sort((a, b) => (before(a, b) ? -1 : 1))
}

function* backwards(from: Job | null): Generator<Job> {
  for (let job = from; job !== null; job = job.prev) yield job
}
