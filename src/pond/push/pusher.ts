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

import type { BatcherLimits } from '../../batch/batcher.ts'
import { KeyedBatcher } from '../../batch/keyed-batcher.ts'
import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { linkBytes } from './links.ts'

/** A call to the store carries at most this many jobs and bytes of data. A single larger job goes alone. */
export const MAX_PUSH = { items: DEFAULTS.producer.maxItems, bytes: DEFAULTS.producer.maxBytes }

/** Milliseconds that a push waits behind an unanswered one, where the store takes several calls at once; then it is sent. */
const PATIENCE = 100

/** Jobs that go in one call, of one part of the store. */
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
    return this.#batcher.add(this.#partOf(job), { jobs: [job], after: undefined }, bytesOf(job))
  }

  /**
   * Pushes many jobs, in calls of at most 500 jobs or 1 MiB. After the first call that did not store all of its jobs,
   * no further one is made (of the same part of the store, where it has parts).
   * @returns per call a promise of its outcomes; one that was not made has none
   */
  pushMany(jobs: readonly NewJob[]): Promise<PushOutcome[]>[] {
    const last = new Map<string, NonNullable<Push['after']>>()
    return [...batches(jobs)].map((batch) => {
      const parts = [...Map.groupBy(batch, (job) => this.#partOf(job))]
      const answers = parts.map(([part, own]) => {
        const push: Push = { jobs: own, after: last.get(part) }
        const answer = this.#add(part, push)
        const isWhole = (outcomes: PushOutcome[]) => outcomes.length > 0 && outcomes.every(isStored)
        last.set(part, { push, isStored: answer.then(isWhole, () => false) })
        return answer
      })
      const [only, ...others] = answers
      return only !== undefined && others.length === 0 ? only : merged(batch, parts, answers)
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

  #add(part: string, push: Push): Promise<PushOutcome[]> {
    const bytes = push.jobs.reduce((sum, job) => sum + bytesOf(job), 0)
    return this.#batcher.add(part, push, bytes, push.jobs.length)
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

  #partOf(job: NewJob): string {
    return this.#store.parts?.ofJob(job) ?? ''
  }
}

const isStored = ({ status }: PushOutcome): boolean =>
  status === 'pushed' || status === 'existing' || status === 'replaced'

/** The outcomes of all parts, in the order of the jobs. Where a part failed, its jobs have its error. */
async function merged(
  batch: readonly NewJob[],
  parts: readonly [string, readonly NewJob[]][],
  answers: readonly Promise<PushOutcome[]>[],
): Promise<PushOutcome[]> {
  const settled = await Promise.allSettled(answers)
  const outcomes = new Map<NewJob, PushOutcome>()
  for (const [index, [, jobs]] of parts.entries()) {
    const answer = settled[index]
    for (const [at, job] of jobs.entries()) {
      const outcome = answer?.status === 'fulfilled' ? answer.value[at] : failed(job, answer?.reason)
      if (outcome !== undefined) outcomes.set(job, outcome)
    }
  }
  return batch.flatMap((job) => outcomes.get(job) ?? [])
}

/** @throws what is no error of Millpond */
function failed({ id }: NewJob, error: unknown): PushOutcome {
  if (error instanceof MillpondError) return { status: 'failed', id, error }
  throw error
}

/** Roughly the bytes of a job's data and parents: a text is counted in UTF-16 units. */
export function bytesOf(job: NewJob): number {
  return job.data.body.length + linkBytes(job)
}

/** Cuts jobs into batches of a size that one call carries. */
export function* batches(jobs: readonly NewJob[]): Generator<NewJob[]> {
  let from = 0
  let bytes = 0
  for (const [at, job] of jobs.entries()) {
    const more = bytesOf(job)
    if (at > from && (at - from === MAX_PUSH.items || bytes + more > MAX_PUSH.bytes)) {
      yield jobs.slice(from, at)
      from = at
      bytes = 0
    }
    bytes += more
  }
  if (from < jobs.length) yield jobs.slice(from)
}
