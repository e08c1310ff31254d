/**
 * A binary heap of jobs that knows where each job sits (`slot`), so that a cancelled job leaves at once.
 * Written out because the small heap packages on npm have no removal, which is the point here.
 */

import type { Job } from './job.ts'

export class JobHeap {
  readonly #jobs: Job[] = []
  readonly #before: (a: Job, b: Job) => boolean

  constructor(before: (a: Job, b: Job) => boolean) {
    this.#before = before
  }

  get size(): number {
    return this.#jobs.length
  }

  get first(): Job | undefined {
    return this.#jobs[0]
  }

  /** In no particular order. */
  get all(): readonly Job[] {
    return this.#jobs
  }

  add(job: Job): void {
    this.#jobs.push(job)
    this.#rise(job, this.#jobs.length - 1)
  }

  remove(job: Job): void {
    const slot = job.slot
    const last = this.#jobs.pop()
    job.slot = -1
    if (last === undefined || last === job) return
    // The last one takes the free slot and may belong further up or further down.
    this.#rise(last, slot)
    this.#sink(last, last.slot)
  }

  #rise(job: Job, slot: number): void {
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1
      const parent = this.#jobs[parentSlot]
      if (parent === undefined || !this.#before(job, parent)) break
      this.#put(parent, slot)
      slot = parentSlot
    }
    this.#put(job, slot)
  }

  #sink(job: Job, slot: number): void {
    for (;;) {
      let childSlot = 2 * slot + 1
      let child = this.#jobs[childSlot]
      if (child === undefined) break
      const right = this.#jobs[childSlot + 1]
      if (right !== undefined && this.#before(right, child)) {
        child = right
        childSlot++
      }
      if (!this.#before(child, job)) break
      this.#put(child, slot)
      slot = childSlot
    }
    this.#put(job, slot)
  }

  #put(job: Job, slot: number): void {
    this.#jobs[slot] = job
    job.slot = slot
  }
}
