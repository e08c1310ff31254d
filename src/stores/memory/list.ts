/** A doubly linked list through the jobs themselves: append, and removal from anywhere, cost the same at any length. */

/** What an entry carries of its list. */
export interface Linked<Entry extends Linked<Entry>> {
  prev: Entry | null
  next: Entry | null
  list: JobList<Entry> | null
}

export class JobList<Job extends Linked<Job>> {
  first: Job | null = null
  last: Job | null = null
  size = 0

  append(job: Job): void {
    this.insertAfter(this.last, job)
  }

  /** `before` null: at the front. */
  insertAfter(before: Job | null, job: Job): void {
    const after = before === null ? this.first : before.next
    job.list = this
    job.prev = before
    job.next = after
    if (before === null) this.first = job
    else before.next = job
    if (after === null) this.last = job
    else after.prev = job
    this.size++
  }

  remove(job: Job): void {
    const { prev, next } = job
    if (prev === null) this.first = next
    else prev.next = next
    if (next === null) this.last = prev
    else next.prev = prev
    // Links left in a removed job would keep its whole neighbourhood from being collected.
    job.prev = null
    job.next = null
    job.list = null
    this.size--
  }
}
