/**
 * The waiting jobs of a queue in the order of claiming: priority, then place.
 *
 * Each priority has a list of jobs that wait since their push, which arrive in order of place, and a heap of those that
 * came back (promoted, released, failed, lost, re-queued) and belong somewhere in between. Claiming takes the earlier of
 * the two heads, so that a plain job never pays for the heap.
 */

import { LinkedList } from '../../linked-list.ts'
import { JobHeap } from './heap.ts'
import type { Job } from './job.ts'

export const byPlace = (a: Job, b: Job): boolean => a.place < b.place

class Line {
  readonly fresh = new LinkedList<Job>()
  readonly returned = new JobHeap(byPlace)

  get first(): Job | null {
    const fresh = this.fresh.first
    const returned = this.returned.first
    if (returned === undefined) return fresh
    return fresh === null || byPlace(returned, fresh) ? returned : fresh
  }
}

export class WaitingLine {
  size = 0
  readonly #lines: (Line | undefined)[] = []
  /** A bit for each priority that has jobs. */
  #occupied = 0

  /** For a job just pushed: its place is after all others. */
  append(job: Job): void {
    this.#line(job.priority).fresh.append(job)
    this.#occupied |= 1 << job.priority
    this.size++
  }

  putBack(job: Job): void {
    this.#line(job.priority).returned.add(job)
    this.#occupied |= 1 << job.priority
    this.size++
  }

  remove(job: Job): void {
    const line = this.#line(job.priority)
    if (job.slot >= 0) line.returned.remove(job)
    else line.fresh.remove(job)
    if (line.fresh.size === 0 && line.returned.size === 0) this.#occupied &= ~(1 << job.priority)
    this.size--
  }

  get first(): Job | null {
    if (this.#occupied === 0) return null
    return this.#lines[31 - Math.clz32(this.#occupied)]?.first ?? null
  }

  /** Earliest `dueAt`. Among fresh jobs that is the first of each list; of those that came back, all are looked at. */
  oldestDue(): number | null {
    let oldest = Number.POSITIVE_INFINITY
    for (const line of this.#lines) {
      if (line === undefined) continue
      if (line.fresh.first !== null) oldest = Math.min(oldest, line.fresh.first.dueAt)
      for (const job of line.returned.all) oldest = Math.min(oldest, job.dueAt)
    }
    return oldest === Number.POSITIVE_INFINITY ? null : oldest
  }

  /** In the order of claiming, from after `cursor` on. Lazily, so that a page costs no more than the page and a walk to it. */
  *after(cursor: Job | null): Generator<Job> {
    for (let priority = cursor?.priority ?? this.#lines.length - 1; priority >= 0; priority--) {
      const line = this.#lines[priority]
      if (line === undefined) continue
      const from = cursor !== null && cursor.priority === priority ? cursor : null
      yield* merge(line, from)
    }
  }

  #line(priority: number): Line {
    let line = this.#lines[priority]
    if (line === undefined) {
      line = new Line()
      while (this.#lines.length <= priority) this.#lines.push(undefined)
      this.#lines[priority] = line
    }
    return line
  }
}

function* merge(line: Line, cursor: Job | null): Generator<Job> {
  const place = cursor?.place ?? -1
  const returned = line.returned.all.filter((job) => job.place > place).sort((a, b) => a.place - b.place)
  let fresh = cursor?.list === line.fresh ? cursor.next : line.fresh.first
  while (fresh !== null && fresh.place <= place) fresh = fresh.next
  for (const job of returned) {
    while (fresh !== null && byPlace(fresh, job)) {
      yield fresh
      fresh = fresh.next
    }
    yield job
  }
  for (; fresh !== null; fresh = fresh.next) yield fresh
}
