/**
 * The running jobs of a queue, by when their leases end.
 *
 * Workers use few different leases, and within one length the order of claiming and extending is the order of ending. So
 * there is a list for each length, and a claim or completion costs no search; a heap would cost several times as much.
 */

import { LinkedList } from '../../linked-list.ts'
import type { Job } from './job.ts'

export class Leases {
  size = 0
  readonly #lists = new Map<number, LinkedList<Job>>()
  #recent = new LinkedList<Job>()
  #recentLength = -1

  add(job: Job, lease: number): void {
    if (lease !== this.#recentLength) this.#choose(lease)
    const list = this.#recent
    // Only a clock that was set back makes this look further than the last.
    let before = list.last
    while (before !== null && before.leaseUntil > job.leaseUntil) before = before.prev
    list.insertAfter(before, job)
    this.size++
  }

  remove(job: Job): void {
    job.list?.remove(job)
    this.size--
  }

  /** A job whose lease ended at or before `now`. */
  ended(now: number): Job | null {
    for (const [lease, list] of this.#lists) {
      if (list.first === null) {
        this.#forget(lease)
        continue
      }
      if (list.first.leaseUntil <= now) return list.first
    }
    return null
  }

  /** In no particular order. */
  all(): Job[] {
    const jobs: Job[] = []
    for (const list of this.#lists.values()) {
      for (let job = list.first; job !== null; job = job.next) jobs.push(job)
    }
    return jobs
  }

  #choose(lease: number): void {
    const list = this.#lists.get(lease) ?? new LinkedList<Job>()
    this.#lists.set(lease, list)
    this.#recent = list
    this.#recentLength = lease
  }

  #forget(lease: number): void {
    this.#lists.delete(lease)
    if (lease === this.#recentLength) this.#recentLength = -1
  }
}
