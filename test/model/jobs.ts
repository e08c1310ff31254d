/** The jobs and queues of the model, and how a job ends. */
import type { FinalState, Hold, JobState } from '../../src/values/jobs/records.ts'
import type { Totals } from '../../src/values/operations/requests.ts'
import { ModelGraph } from './graph.ts'
import { ModelKeys } from './once.ts'
import { live, type ModelJob, type ModelQueue, newQueue } from './state.ts'

export class ModelJobs {
  now = 0
  jobs: ModelJob[] = []
  removed = false
  readonly queues = new Map<string, ModelQueue>()
  readonly graph = new ModelGraph()
  readonly keys = new ModelKeys()

  protected total(queue: string, name: keyof Totals): void {
    this.queue(queue).totals[name]++
  }

  protected finish(job: ModelJob, state: FinalState): void {
    this.total(job.queue, state)
    this.keys.leave(job, this.jobs, state !== 'cancelled', this.now)
    job.state = state
    job.finishedAt = this.now
    this.graph.free(job)
    this.graph.ended.push({ id: job.id, isDone: state === 'done' })
    if (this.keep(job.queue, state) === 0) this.jobs = this.jobs.filter((other) => other !== job)
  }

  /** To be called when an operation is over: tells the jobs that wait for those that it has ended. */
  settle(): void {
    for (let ended = this.graph.ended.shift(); ended !== undefined; ended = this.graph.ended.shift()) {
      for (const link of this.graph.openOf(ended.id)) {
        const { child } = link
        const isLast = this.graph.close(link) === 0
        if (!ended.isDone && child.onDead !== 'run') this.cancelFor(child)
        else if (isLast) this.letGo(child)
      }
    }
    this.graph.forget(this.jobs)
  }

  /** A job that it waits for did not get done. */
  protected cancelFor(job: ModelJob): void {
    job.error = { code: 'ParentFailed', name: '', message: '' }
    this.finish(job, 'cancelled')
  }

  protected letGo(job: ModelJob): void {
    this.graph.free(job)
    job.dueAt = Math.max(this.now, job.dueAt)
    job.state = job.dueAt > this.now ? 'scheduled' : 'waiting'
  }

  protected keep(queue: string, state: JobState): number {
    const { keepDone, keepDead } = this.queue(queue)
    return state === 'done' ? keepDone : keepDead
  }

  /** Makes it, if it is not there. */
  queue(queue: string): ModelQueue {
    const known = this.queues.get(queue)
    if (known) return known
    const made = newQueue(queue)
    this.queues.set(queue, made)
    return made
  }

  protected in(queue: string, state: JobState): ModelJob[] {
    return this.jobs.filter((job) => job.queue === queue && job.state === state && !job.isKept)
  }

  job(id: string): ModelJob | undefined {
    return this.jobs.find((job) => job.id === id)
  }

  protected liveWithKey(queue: string, key: string | null): ModelJob | undefined {
    return key === null
      ? undefined
      : this.jobs.find((job) => job.queue === queue && job.key === key && !job.follows && live(job))
  }

  protected held(queue: string, { id, fence }: Hold): ModelJob | undefined {
    const job = this.job(id)
    return job?.queue === queue && job.state === 'running' && job.fence === fence ? job : undefined
  }
}
