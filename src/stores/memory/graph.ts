/**
 * What the end of a job means for the jobs that wait for it: contract/graphs.md.
 *
 *   a job ends ──► `ended` ──at the end of the operation──► its open links are closed, MAX_STEP in all
 *                                                      └─ more than that ──► `#left` ──► sweeps
 *
 * A child that is cancelled ends itself, and joins the line.
 */

import { parentFailed } from '../../values/jobs/parent-failed.ts'
import type { FinalState, OnDead } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { type Bells, SOON } from '../bells.ts'
import type { IdIndex } from './id-index.ts'
import { isFinal, type Job, Links } from './job.ts'
import { link } from './links.ts'
import type { MemoryQueue } from './queue.ts'

const MAX_STEP = DEFAULTS.graph.step

/** The job, and how it ended. */
interface Ending {
  id: string
  how: FinalState | 'removed'
}

interface Ended extends Ending {
  children: Iterator<Job>
}

interface Waits {
  after: readonly string[]
  onDead?: OnDead | undefined
}

/** What it needs of the store's state. */
interface Surroundings {
  readonly jobs: IdIndex<Job>
  readonly bells: Bells
  now(): number
  findOrCreate(queue: string): MemoryQueue
  ended(queue: MemoryQueue, job: Job): void
}

export class Graph {
  readonly #state: Surroundings
  /** By the id of a job that the store does not know, who waits for it. */
  readonly #awaited = new Map<string, Set<Job>>()
  readonly #ended: Ended[] = []
  /** What the operations that ended the jobs could not do. */
  #left: Ended[] = []

  constructor(state: Surroundings) {
    this.#state = state
  }

  /** A job has ended: has come to a final state, or was removed while it was live. */
  ended(job: Job): void {
    if (job.links === null || job.links.children.size === 0) return
    const how = isFinal(job.state) ? job.state : 'removed'
    this.#ended.push({ id: job.id, how, children: job.links.children.values() })
  }

  /** Of the jobs that the operation has ended. */
  settle(): void {
    if (this.#ended.length === 0) return
    this.#left.push(...this.#step(this.#ended.splice(0)))
  }

  /** What was left before, too. @returns whether there is more */
  sweep(): boolean {
    if (this.#ended.length + this.#left.length === 0) return false
    this.#left = this.#step([...this.#ended.splice(0), ...this.#left])
    return this.#left.length > 0
  }

  /** @returns what is left of the line */
  #step(line: Ended[]): Ended[] {
    let looked = 0
    for (let at = 0; at < line.length; at++) {
      const parent = line[at]
      for (let next = parent?.children.next(); parent !== undefined && !next?.done; next = parent.children.next()) {
        if (next !== undefined) this.#close(next.value, parent)
        // Children that were cancelled.
        line.push(...this.#ended.splice(0))
        if (++looked === MAX_STEP) return line.slice(at)
      }
    }
    return []
  }

  /**
   * A job is about to be stored that waits for these.
   * @returns the first of them that did not get done, if that is why the job is to be cancelled: to be given to `stored`
   */
  wait(job: Job, { after, onDead = 'cancel' }: Waits): Ending | undefined {
    const links = new Links(onDead)
    job.links = links
    let failed: Ending | undefined
    for (const id of after) {
      const parent = this.#state.jobs.get(id)
      if (parent === undefined) this.#await(id, job)
      else link(parent, job)
      if (parent === undefined || !isFinal(parent.state)) links.open.add(id)
      else if (parent.state !== 'done' && onDead === 'cancel') failed ??= { id, how: parent.state }
    }
    if (links.open.size > 0 || failed !== undefined) job.state = 'blocked'
    return failed
  }

  /** A running job waits until these have ended. @returns whether any of them has not */
  waitAgain(job: Job, after: readonly string[]): boolean {
    const jobs = after.map((id) => this.#state.jobs.get(id))
    const live = jobs.filter((one) => one !== undefined && one !== job && !isFinal(one.state))
    if (live.length === 0) return false
    const links = new Links('run', job.links)
    job.links = links
    for (const parent of live) {
      if (parent === undefined) continue
      link(parent, job)
      links.open.add(parent.id)
    }
    return true
  }

  /** All who wait for that job wait for this one too. */
  partOf(job: Job, id: string): void {
    for (const child of this.#state.jobs.get(id)?.links?.children ?? []) {
      if (child === job || !child.links?.open.has(id)) continue
      link(job, child)
      child.links.open.add(job.id)
    }
  }

  /** The job has been stored. @param failed as `wait` has answered */
  stored(queue: MemoryQueue, job: Job, failed: Ending | undefined): void {
    this.#came(job)
    if (failed !== undefined) this.#cancel(queue, job, failed)
    else if (isFinal(job.state)) this.ended(job)
  }

  #await(id: string, child: Job): void {
    const awaiting = this.#awaited.get(id) ?? new Set()
    this.#awaited.set(id, awaiting.add(child))
  }

  /** Is it one that others wait for already? */
  #came(job: Job): void {
    const awaiting = this.#awaited.size === 0 ? undefined : this.#awaited.get(job.id)
    if (awaiting === undefined) return
    this.#awaited.delete(job.id)
    for (const child of awaiting) if (child.links?.open.has(job.id)) link(job, child)
  }

  /** The job waits for no other any more, for whatever reason. */
  leaves(job: Job): void {
    for (const id of job.links?.open ?? []) {
      const awaiting = this.#awaited.get(id)
      if (awaiting?.delete(job) && awaiting.size === 0) this.#awaited.delete(id)
    }
    job.links?.open.clear()
  }

  /** Jobs have come back, all of a call: they wait for those of their parents that live. @returns whether this one does */
  cameBack(job: Job): boolean {
    const { parents, open } = job.links ?? {}
    for (const [id, parent] of parents ?? []) if (!isFinal(parent.state)) open?.add(id)
    if (open === undefined || open.size === 0) return false
    this.#state.findOrCreate(job.queue).block(job)
    return true
  }

  /** Closes the link of an ended job to a child, if it is open. */
  #close(child: Job, { id, how }: Ending): void {
    if (child.state !== 'blocked' || !child.links?.open.has(id)) return
    const now = this.#state.now()
    const queue = this.#state.findOrCreate(child.queue)
    child.links.open.delete(id)
    if (how !== 'done' && child.links.onDead === 'cancel') this.#cancel(queue, child, { id, how })
    else if (child.links.open.size === 0) {
      child.dueAt = Math.max(now, child.dueAt)
      if (child.dueAt > now) queue.schedule(child)
      else queue.wait(child)
      if (child.dueAt < now + SOON) this.#state.bells.ring('work', queue.name)
    }
  }

  /** A job that waits for one that did not get done. */
  #cancel(queue: MemoryQueue, job: Job, { id, how }: Ending): void {
    job.error = parentFailed(id, how)
    this.leaves(job)
    queue.finish(job, 'cancelled', this.#state.now())
    this.#state.ended(queue, job)
    this.#state.bells.ring('room', queue.name)
  }
}
