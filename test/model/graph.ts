/** Which job of the model waits for which, as plainly as it can be put: a list of links. */
import type { JobState, OnDead } from '../../src/values/jobs/records.ts'
import { live, type ModelJob } from './state.ts'

interface Link {
  parent: string
  child: ModelJob
  open: boolean
  /** The child was pushed with onDead `run`. */
  runs?: boolean
  /** The parent was not there when the link was made. */
  early?: boolean
  /** The parent was there, and is not any more: a job that has its id now is another one. `perhaps`: the child has ended since. */
  gone?: 'surely' | 'perhaps'
}

export interface Ended {
  id: string
  isDone: boolean
}

export class ModelGraph {
  links: Link[] = []
  /** Jobs whose children are to be told. */
  readonly ended: Ended[] = []

  /**
   * A job that is to be stored waits for these.
   * @returns whether one of them has ended so that the job is to be cancelled
   */
  wait(child: ModelJob, after: readonly string[], onDead: OnDead, find: (id: string) => ModelJob | undefined): boolean {
    const states = [...new Set(after)].map((parent): [string, JobState | undefined] => [parent, find(parent)?.state])
    const isFailed = ([, state]: [string, JobState | undefined]) => state === 'dead' || state === 'cancelled'
    const isOpen = ([, state]: [string, JobState | undefined]) => state !== 'done' && !isFailed(['', state])
    for (const each of states) {
      const early = each[1] === undefined
      this.links.push({ parent: each[0], child, open: isOpen(each), runs: onDead === 'run', early })
    }
    if (this.#count(child) === 0 && !(onDead === 'cancel' && states.some(isFailed))) return false
    child.state = 'blocked'
    if (onDead === 'run') child.onDead = 'run'
    return onDead === 'cancel' && states.some(isFailed)
  }

  /** All that wait for that job wait for this one, too. */
  partOf(job: ModelJob, of: string): void {
    for (const { child } of this.openOf(of)) {
      if (child === job) continue
      this.links = this.links.filter((link) => link.child !== child || link.parent !== job.id)
      this.links.push({ parent: job.id, child, open: true })
      this.#count(child)
    }
  }

  openOf(parent: string): Link[] {
    return this.links.filter((link) => link.open && link.parent === parent)
  }

  awaitedBy(child: ModelJob): string[] {
    return this.links.filter((link) => link.open && link.child === child).map(({ parent }) => parent)
  }

  /** @returns how many others it still waits for */
  close(link: Link): number {
    link.open = false
    return this.#count(link.child)
  }

  /** A job has come back. @returns whether it waits for parents that live */
  reopen(child: ModelJob, find: (id: string) => ModelJob | undefined): boolean {
    for (const link of this.links) {
      const parent = find(link.parent)
      if (link.child === child && !link.gone && parent !== undefined && live(parent)) link.open = true
    }
    if (this.awaitedBy(child).length === 0) return false
    child.state = 'blocked'
    if (this.links.some((link) => link.child === child && link.runs)) child.onDead = 'run'
    this.#count(child)
    return true
  }

  /** It is not blocked any more. */
  free(child: ModelJob): void {
    for (const link of this.links) if (link.child === child) link.open = false
    delete child.waitsFor
    delete child.onDead
  }

  /** Links of jobs that are gone are gone, but for those to jobs that are yet to come. A live child is told which of its parents are gone. */
  forget(jobs: readonly ModelJob[]): void {
    const isThere = (id: string) => jobs.some((job) => job.id === id)
    for (const link of this.links) {
      if (link.gone === undefined && !link.open && !isThere(link.parent)) link.gone = 'surely'
      if (link.gone && !live(link.child)) link.gone = 'perhaps'
    }
    this.links = this.links.filter(({ child }) => jobs.includes(child))
  }

  hasLiveChild(id: string): boolean {
    return this.links.some(({ parent, child, gone }) => parent === id && !gone && live(child))
  }

  /** `unsure`: those of links whose child may have ended before its parent was there. A store may have forgotten these. */
  relatives(job: ModelJob): Record<'parents' | 'gone' | 'perhaps' | 'children' | 'unsure', string[]> {
    const above = this.links.filter(({ child }) => child === job)
    const parents = above.filter(({ gone }) => !gone).map(({ parent }) => parent)
    const goneIf = (how: Link['gone']) => above.filter(({ gone }) => gone === how).map(({ parent }) => parent)
    const below = this.links.filter((link) => link.parent === job.id && !link.gone)
    const children = below.map(({ child }) => child.id)
    const isUnsure = ({ early, open }: Link) => early && !open
    const unsure = [
      ...above.filter(isUnsure).map(({ parent }) => parent),
      ...below.filter(isUnsure).map(({ child }) => child.id),
    ]
    return {
      parents: parents.sort(),
      gone: goneIf('surely').sort(),
      perhaps: goneIf('perhaps'),
      children: children.sort(),
      unsure,
    }
  }

  #count(child: ModelJob): number {
    const count = this.awaitedBy(child).length
    if (live(child)) child.waitsFor = count
    if (count === 0) delete child.waitsFor
    return count
  }
}
