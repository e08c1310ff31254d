/**
 * The waiting jobs of a queue in the order of claiming: priority, then place.
 *
 * Each priority has a list of jobs that wait since their push, which arrive in order of place, and a heap of those that
 * came back (promoted, released, failed, lost, re-queued) and belong somewhere in between. Claiming takes the earlier of
 * the two heads, so that a plain job never pays for the heap.
 */
import { LinkedList } from '../../values/collections/linked-list.ts'
import { Heap } from './heap.ts'
import type { Job } from './job.ts'

export const byPlace = (a: Job, b: Job): boolean => a.place < b.place
export const byClaim = (a: Job, b: Job): boolean =>
  a.priority > b.priority || (a.priority === b.priority && byPlace(a, b))

/** Most jobs that came back of which `oldestDue` looks at the time. A heap has its first entries among these. */
const MAX_RETURNED_SEEN = 64

/** Where a page of a list ended: what the list is ordered by, the job's number in that order, and the job, if it still exists. */
export interface Cursor {
  readonly key: number
  readonly number: number
  readonly job: Job | undefined
}

class OnePriority {
  readonly fresh = new LinkedList<Job>()
  readonly returned = new Heap<Job>(byPlace)

  get first(): Job | null {
    const fresh = this.fresh.first
    const returned = this.returned.first
    if (returned === undefined) return fresh
    return fresh === null || byPlace(returned, fresh) ? returned : fresh
  }

  /** In order of place, from there on. */
  *after(from: Cursor | null): Generator<Job> {
    const place = from?.number ?? -1
    let fresh = from?.job?.list === this.fresh ? from.job.next : this.fresh.first
    while (fresh !== null && fresh.place <= place) fresh = fresh.next
    const returned = this.returned.all.filter((job) => job.place > place).sort((a, b) => a.place - b.place)
    for (const job of returned) {
      for (; fresh !== null && byPlace(fresh, job); fresh = fresh.next) yield fresh
      yield job
    }
    for (; fresh !== null; fresh = fresh.next) yield fresh
  }
}

export class WaitingJobs {
  size = 0
  readonly #priorities: OnePriority[] = []

  /** For a job just pushed: its place is after all others. */
  append(job: Job): void {
    this.#of(job).fresh.append(job)
    this.size++
  }

  putBack(job: Job): void {
    this.#of(job).returned.add(job)
    this.size++
  }

  remove(job: Job): void {
    const jobs = this.#of(job)
    if (job.index >= 0) jobs.returned.remove(job)
    else jobs.fresh.remove(job)
    this.size--
  }

  get first(): Job | null {
    return this.firstFrom(0)
  }

  /** The first job of this priority or a higher one. */
  firstFrom(minPriority: number): Job | null {
    if (this.size === 0) return null
    for (let priority = this.#priorities.length - 1; priority >= minPriority; priority--) {
      const first = this.#priorities[priority]?.first ?? null
      if (first !== null) return first
    }
    return null
  }

  /** Earliest `dueAt` of the first job of each list, and of those that came back of some of the earliest by place. */
  oldestDue(): number | null {
    let oldest = Number.POSITIVE_INFINITY
    for (const { fresh, returned } of this.#priorities) {
      if (fresh.first !== null) oldest = Math.min(oldest, fresh.first.dueAt)
      for (const job of returned.all.slice(0, MAX_RETURNED_SEEN)) oldest = Math.min(oldest, job.dueAt)
    }
    return oldest === Number.POSITIVE_INFINITY ? null : oldest
  }

  /** In the order of claiming, from there on. Lazily, so that a page costs no more than the page and a walk to it. */
  *after(from: Cursor | null): Generator<Job> {
    const highest = from?.key ?? this.#priorities.length - 1
    for (let priority = highest; priority >= 0; priority--) {
      yield* this.#priorities[priority]?.after(priority === highest ? from : null) ?? []
    }
  }

  #of({ priority }: Job): OnePriority {
    while (this.#priorities.length <= priority) this.#priorities.push(new OnePriority())
    return this.#priorities[priority] ?? new OnePriority()
  }
}
