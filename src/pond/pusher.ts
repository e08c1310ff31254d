/**
 * The one way of pushes to the store: single ones, those of `pushMany`, and those that waited for capacity. They are stored in the order in
 * which they came here, and those that come together share a call.
 *
 * A large `pushMany` takes several calls. Each keeps its place in the order, but is only made once the one before has
 * stored all its jobs. A store that leaves a call unanswered for longer than PATIENCE gives up the order across them.
 *
 * Pushes inside a transaction are the exception: they go out at once, because the caller may hold a lock that other pushes wait for. So do
 * pushes of all jobs or none.
 */

import type { BatcherLimits } from '../batch/batcher.ts'
import { KeyedBatcher } from '../batch/keyed-batcher.ts'
import type { Store } from '../store.ts'
import type { NewJob, PushOutcome } from '../values/jobs/records.ts'
import { batches, bytesOf, MAX_PUSH } from './push.ts'

/** Milliseconds that a push waits behind an unanswered one, where the store takes several calls at once; then it is sent. */
const PATIENCE = 100

/** Jobs that go in one call. */
interface Push {
  jobs: readonly NewJob[]
  /** The jobs before these, of the same `pushMany`, and whether all of them were stored; undefined: there are none. */
  after: { push: Push; isStored: Promise<boolean> } | undefined
}

export class Pusher {
  readonly #store: Store
  readonly #onSend: (jobs: readonly NewJob[]) => void
  readonly #batcher: KeyedBatcher<Push, PushOutcome[]>

  /** @param onSend called when jobs are on their way to the store */
  constructor(store: Store, onSend: (jobs: readonly NewJob[]) => void) {
    this.#store = store
    this.#onSend = onSend
    const limits: BatcherLimits = {
      ...MAX_PUSH,
      regroup: true,
      ...(store.capabilities.pipelined && { overlap: true, patience: PATIENCE }),
    }
    this.#batcher = new KeyedBatcher((pushes) => this.#send(pushes), limits)
  }

  /** Rejects as `push` of a store does. */
  push(job: NewJob): Promise<PushOutcome[]> {
    return this.#batcher.add(this.#laneOf(job), { jobs: [job], after: undefined }, bytesOf(job))
  }

  /**
   * Pushes many jobs of a queue, in calls of at most 500 jobs or 1 MiB. After the first call that did not store all of its jobs, no further one is made.
   * @returns per call a promise of its outcomes; one that was not made has none
   */
  pushMany(jobs: readonly NewJob[]): Promise<PushOutcome[]>[] {
    let after: Push['after']
    return [...batches(jobs)].map((batch) => {
      const push: Push = { jobs: batch, after }
      const bytes = batch.reduce((sum, job) => sum + bytesOf(job), 0)
      const answer = this.#batcher.add(this.#laneOf(batch[0]), push, bytes, batch.length)
      const isWhole = (outcomes: PushOutcome[]) => outcomes.length > 0 && outcomes.every(isStored)
      after = { push, isStored: answer.then(isWhole, () => false) }
      return answer
    })
  }

  /** All of them or none, in a call of their own, which keeps no order with other pushes. */
  pushWhole(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const answer = this.#store.operations.push({ jobs, whole: true })
    this.#onSend(jobs)
    return answer
  }

  /** Resolves when everything pushed so far is settled. */
  flushed(): Promise<void> {
    return this.#batcher.flushed()
  }

  #laneOf(job: NewJob | undefined): string {
    return job === undefined ? '' : (this.#store.laneOf?.(job) ?? '')
  }

  async #send(pushes: readonly Push[]): Promise<PushOutcome[][]> {
    // What goes in the same call is stored in order, without a wait for itself.
    const gated = pushes.filter(({ after }) => after !== undefined && !pushes.includes(after.push))
    const isGated = gated.length > 0
    const gates = isGated
      ? await Promise.all(pushes.map((push) => (gated.includes(push) ? push.after?.isStored : true)))
      : []
    const jobs = pushes.flatMap((push, index) => (gates[index] === false ? [] : push.jobs))
    if (jobs.length === 0) return pushes.map(() => [])
    const answer = this.#store.operations.push({ jobs })
    this.#onSend(jobs)
    const outcomes = await answer
    let from = 0
    return pushes.map((push, index) => {
      if (gates[index] === false) return []
      const own = outcomes.slice(from, from + push.jobs.length)
      from += push.jobs.length
      return own
    })
  }
}

const isStored = ({ status }: PushOutcome): boolean => status !== 'full' && status !== 'failed' && status !== 'orphan'
