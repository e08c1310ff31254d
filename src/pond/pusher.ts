/**
 * The one way of jobs to the store, but for those of a caller's own transaction: a job, or a list of jobs, joins those that wait for the next
 * call, in the order of pushing.
 */
import { KeyedBatcher } from '../batch/keyed-batcher.ts'
import type { NewJob, PushOutcome, Store } from '../store.ts'
import { type MillpondError, storeError } from '../values/errors.ts'
import { bytesOf, MAX_PUSH, type Pushed } from './push.ts'

/** What a queue makes of an outcome; an error is its pusher's. */
export type OutcomeOf<Out> = (job: NewJob, outcome: PushOutcome) => Out | MillpondError

/** A job by itself; or several, whose outcomes are told together. */
type Item = { job: NewJob; outcomeOf: OutcomeOf<Pushed> } | { jobs: readonly NewJob[] }

/** Milliseconds that a push waits behind an unanswered one, where the store takes several calls at once; then it is sent. */
const PATIENCE = 100

export class Pusher {
  readonly #store: Store
  readonly #sending: (jobs: readonly NewJob[]) => void
  readonly #batcher: KeyedBatcher<Item, Pushed | PushOutcome[]>

  /** @param sending called with the jobs of a call that was just made */
  constructor(store: Store, sending: (jobs: readonly NewJob[]) => void) {
    this.#store = store
    this.#sending = sending
    const overlap = store.capabilities.pipelined ? { overlap: true, patience: PATIENCE } : {}
    this.#batcher = new KeyedBatcher<Item, Pushed | PushOutcome[]>((items) => this.#send(items), {
      ...MAX_PUSH,
      regroup: true,
      ...overlap,
    })
  }

  /** Rejects with the error that `outcomeOf` makes, or with the store's. */
  add(job: NewJob, outcomeOf: OutcomeOf<Pushed>): Promise<Pushed> {
    // The answer to a job is what its queue made of the outcome.
    return this.#batcher.add(this.#partOf(job), { job, outcomeOf }, bytesOf(job)) as Promise<Pushed>
  }

  /** As many as one call carries. Rejects if every job failed. @returns per job */
  async addList(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const { parts } = this.#store
    if (parts === undefined) return this.#addPart('', jobs)
    const byPart = [...Map.groupBy(jobs, (job) => parts.ofJob(job))]
    const answers = await Promise.allSettled(byPart.map(([part, own]) => this.#addPart(part, own)))
    const failed = answers.filter((answer) => answer.status === 'rejected')
    if (failed.length === answers.length && failed[0] !== undefined) throw failed[0].reason
    const outcomes = new Map<NewJob, PushOutcome>()
    for (const [at, [, own]] of byPart.entries()) {
      const answer = answers[at]
      for (const [index, job] of own.entries()) {
        if (answer?.status === 'fulfilled') outcomes.set(job, answer.value[index] as PushOutcome)
        else outcomes.set(job, { status: 'failed', id: job.id, error: storeError(answer?.reason, 'push') })
      }
    }
    return jobs.map((job) => outcomes.get(job) as PushOutcome)
  }

  flushed(): Promise<void> {
    return this.#batcher.flushed()
  }

  #partOf(job: NewJob): string {
    return this.#store.parts?.ofJob(job) ?? ''
  }

  #addPart(part: string, jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const bytes = jobs.reduce((sum, job) => sum + bytesOf(job), 0)
    // The answer to a list is its outcomes.
    return this.#batcher.add(part, { jobs }, bytes, jobs.length) as Promise<PushOutcome[]>
  }

  async #send(items: readonly Item[]): Promise<(Pushed | PushOutcome[] | MillpondError)[]> {
    const jobs = items.flatMap((item) => ('jobs' in item ? item.jobs : item.job))
    const pushed = this.#store.operations.push({ jobs })
    this.#sending(jobs)
    const outcomes = await pushed
    let next = 0
    return items.map((item) => {
      const at = next
      next += 'jobs' in item ? item.jobs.length : 1
      return 'jobs' in item ? outcomes.slice(at, next) : item.outcomeOf(item.job, outcomes[at] as PushOutcome)
    })
  }
}
