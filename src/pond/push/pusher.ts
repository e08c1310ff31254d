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
import { isRefusal, splitting } from '../../batch/splitting.ts'
import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { linkBytes } from './links.ts'
import type { Pushed } from './options.ts'

/** A call to the store carries at most this many jobs and bytes of data. A single larger job goes alone. */
export const MAX_PUSH = { items: DEFAULTS.producer.maxItems, bytes: DEFAULTS.producer.maxBytes }

/** Milliseconds that a push waits behind an unanswered one, where the store takes several calls at once; then it is sent. */
const PATIENCE = 100

/** A job that is pushed alone, and what its outcome means. One that throws rejects this push. */
interface Single {
  job: NewJob
  answered: (job: NewJob, outcome: PushOutcome | undefined) => Pushed
}

/** Jobs of a `pushMany` that go in one call. */
interface Many {
  jobs: readonly NewJob[]
  /** The jobs before these, of the same `pushMany`, and whether all of them were stored; undefined: there are none. */
  after: { push: Many; isStored: Promise<boolean> } | undefined
}

export class Pusher {
  readonly #store: Store
  readonly #onSend: (jobs: readonly NewJob[]) => void
  readonly #batcher: KeyedBatcher<Single | Many, Answer | Promise<Answer>>

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

  /** Settles with what its outcome means, or rejects as `push` of a store does. */
  push(job: NewJob, answered: Single['answered']): Promise<Pushed> {
    // What is pushed alone is answered alone; a step in between would cost a plain push a promise.
    return this.#batcher.add(this.#laneOf(job), { job, answered }, bytesOf(job)) as Promise<Pushed>
  }

  /**
   * Pushes many jobs of a queue, in calls of at most 500 jobs or 1 MiB. After the first call that did not store all
   * of its jobs, no further one is made.
   * @returns per call a promise of its outcomes; one that was not made has none
   */
  pushMany(jobs: readonly NewJob[]): Promise<PushOutcome[]>[] {
    let after: Many['after']
    return [...batches(jobs)].map((batch) => {
      const push: Many = { jobs: batch, after }
      const bytes = batch.reduce((sum, job) => sum + bytesOf(job), 0)
      const answer = this.#batcher.add(this.#laneOf(batch[0]), push, bytes, batch.length) as Promise<PushOutcome[]>
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

  async #send(pushes: readonly (Single | Many)[]): Promise<readonly Sent[]> {
    // What goes in the same call is stored in order, without a wait for itself.
    const gated = pushes.filter(isGated).filter(({ after }) => !pushes.includes(after.push))
    const barred = gated.length === 0 ? NONE : await unstored(gated)
    if (barred.size === 0) return this.#split(pushes)
    const answers = (await this.#split(pushes.filter((push) => !barred.has(push)))).values()
    return pushes.map((push) => (barred.has(push) ? [] : (answers.next().value ?? [])))
  }

  /** What the store refuses for good is refused alone. Of a `pushMany`, the jobs before a refused one are stored. */
  async #split(pushes: readonly (Single | Many)[]): Promise<readonly Sent[]> {
    if (pushes.length === 0) return []
    const answers = await splitting(pushes, (some) => this.#sendTogether(some), 'a push')
    if (!answers.some((answer) => answer instanceof MillpondError)) return answers
    const told: Sent[] = []
    for (const [at, answer] of answers.entries()) {
      const push = pushes[at] as Single | Many
      if (!(answer instanceof MillpondError) || 'job' in push || !isRefusal(answer)) told.push(answer)
      else told.push(await this.#storeUntilRefused(push.jobs))
    }
    return told
  }

  async #storeUntilRefused(jobs: readonly NewJob[]): Promise<PushOutcome[]> {
    const answers = await splitting(jobs, (some) => this.#store.operations.push({ jobs: some }), 'a push', {
      stops: true,
    })
    return answers.map((answer) =>
      answer instanceof MillpondError ? { status: 'withheld', id: '', error: answer } : answer,
    )
  }

  async #sendTogether(pushes: readonly (Single | Many)[]): Promise<Sent[]> {
    const jobs: NewJob[] = []
    for (const push of pushes) {
      if ('job' in push) jobs.push(push.job)
      else jobs.push(...push.jobs)
    }
    if (jobs.length === 0) return pushes.map(() => [])
    const answer = this.#store.operations.push({ jobs, deferred: true })
    this.#onSend(jobs)
    const outcomes = await answer
    let at = 0
    return pushes.map((push) => {
      if ('job' in push) return answerOf(push, outcomes[at++])
      const from = at
      at += push.jobs.length
      return settled(outcomes.slice(from, at))
    })
  }
}

type Answer = Pushed | PushOutcome[]
type Sent = Answer | Promise<Answer> | Error

const NONE: ReadonlySet<unknown> = new Set()

const isGated = (push: Single | Many): push is Many & { after: NonNullable<Many['after']> } =>
  'after' in push && push.after !== undefined

/** Those whose jobs are not to be stored, since one before them was not. */
async function unstored(gated: readonly (Many & { after: NonNullable<Many['after']> })[]): Promise<Set<unknown>> {
  const stored = await Promise.all(gated.map(({ after }) => after.isStored))
  return new Set(gated.filter((_, at) => !stored[at]))
}

/** Where an outcome comes later, the answer is a promise: the batcher goes on without it. */
function answerOf({ job, answered }: Single, outcome: PushOutcome | undefined): Pushed | Promise<Pushed> | Error {
  if (outcome?.later !== undefined) return outcome.later.then((own) => answered(job, own))
  try {
    return answered(job, outcome)
  } catch (error) {
    return error as Error
  }
}

function settled(outcomes: PushOutcome[]): PushOutcome[] | Promise<PushOutcome[]> {
  if (!outcomes.some(({ later }) => later !== undefined)) return outcomes
  return Promise.all(outcomes.map((outcome) => outcome.later ?? outcome))
}

const isStored = ({ status }: PushOutcome): boolean =>
  status === 'pushed' || status === 'existing' || status === 'replaced'

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
