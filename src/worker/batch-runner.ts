/**
 * Runs a batch through the handler and says how each attempt ended. Touches neither slots nor the store's queue.
 *
 *   decoded and checked ──► handler ──► each attempt by its entry of the answer
 *     └─ undecodable, or refused by the schema: this attempt failed
 *
 * With a transaction, the jobs answered as done complete with its commit, all of them or none:
 *
 *   committed ───────────────────────────────► they are done, the others end by their entry
 *   one is over or stale, or its result ─────► rolled back; it ends as such, all others are released
 *   cannot be stored
 *   none is answered as done ────────────────► rolled back; all end by their entry
 *   the store failed ────────────────────────► all failed
 *
 * Of an attempt that is over before the handler is, nothing is said here.
 */

import type { PondEmitter } from '../pond/events.ts'
import type { HoldOutcome, Store, StoreTransaction } from '../store.ts'
import { decode } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { Job } from '../values/job.ts'
import { validate } from '../values/schema.ts'
import type { Attempt } from './attempt.ts'
import type { Batch } from './batch.ts'
import { type Answer, answersOf, failedAll } from './batch-answers.ts'
import type { BatchHandler } from './batch-context.ts'
import { type Committed, completed, type Ending, released } from './ending-batches.ts'
import type { RunnerSettings } from './runner.ts'
import { Verdicts } from './verdicts.ts'

/** Of an attempt that the handler was given. */
interface Answered extends Answer {
  attempt: Attempt
}

type Ended = (endings: readonly (Ending | Committed)[]) => void

export class BatchRunner {
  readonly #store: Store
  readonly #settings: RunnerSettings
  readonly #handler: BatchHandler
  readonly #ended: Ended
  readonly #told: Pick<PondEmitter, 'trouble' | 'failure'>
  readonly #verdicts: Verdicts

  constructor(
    store: Store,
    settings: RunnerSettings,
    handler: BatchHandler,
    ended: Ended,
    told: Pick<PondEmitter, 'trouble' | 'failure'>,
  ) {
    this.#store = store
    this.#settings = settings
    this.#handler = handler
    this.#ended = ended
    this.#told = told
    this.#verdicts = new Verdicts(settings, told)
  }

  /** Never rejects. */
  async run(batch: Batch): Promise<void> {
    for (const attempt of batch.attempts) {
      this.#verdicts.watchTimeout(attempt, (_, ending) => this.#ended([ending]))
    }
    const jobs = await this.#jobsOf(batch)
    if (jobs.size > 0) {
      const answered = await this.#call(batch, jobs)
      const { transaction } = batch
      if (transaction === undefined) this.#ended(answered.filter(isLive).map((each) => this.#ending(each)))
      else this.#ended(await this.#endingsOf(answered, transaction))
    }
    for (const { timeout } of batch.attempts) clearTimeout(timeout)
  }

  /** Of the attempts whose data can be used and that are not over by then. */
  async #jobsOf({ attempts }: Batch): Promise<Map<Attempt, Job>> {
    const { queue, schema } = this.#settings
    const made = attempts.map(async (attempt): Promise<Job | undefined> => {
      const { claimed } = attempt
      try {
        const data = decode(claimed.data, 'data')
        return new Job(queue, claimed, schema === undefined ? data : await validate(schema, data, queue))
      } catch (error) {
        if (attempt.over === undefined) this.#ended([this.#verdicts.failed(attempt, error)])
        return undefined
      }
    })
    const jobs = new Map<Attempt, Job>()
    for (const [index, job] of (await Promise.all(made)).entries()) {
      const attempt = attempts[index]
      if (job !== undefined && attempt?.over === undefined) jobs.set(attempt as Attempt, job)
    }
    return jobs
  }

  async #call(batch: Batch, jobs: ReadonlyMap<Attempt, Job>): Promise<Answered[]> {
    const ids = [...jobs.values()].map(({ id }) => id)
    let answers: Answer[]
    try {
      if (this.#settings.transaction) batch.transaction = this.#store.transactions?.begin()
      answers = answersOf(ids, await this.#handler([...jobs.values()], batch))
    } catch (error) {
      answers = failedAll(ids, error)
    }
    return [...jobs.keys()].map((attempt, index) => ({ attempt, ...(answers[index] as Answer) }))
  }

  #ending({ attempt, failed, value }: Answered): Ending {
    if (failed) return this.#verdicts.failed(attempt, value)
    try {
      return completed(attempt, this.#verdicts.result(value), value)
    } catch (outcome) {
      return this.#verdicts.failed(attempt, outcome)
    }
  }

  /** Ends the transaction. */
  async #endingsOf(answered: Answered[], transaction: StoreTransaction): Promise<(Ending | Committed)[]> {
    const live = answered.filter(isLive)
    for (const { attempt } of live) attempt.ending = true
    const failed = live.filter((each) => each.failed)
    const done = live.filter((each) => !each.failed).map((each) => this.#ending(each))
    const storable = done.filter((ending) => ending.kind === 'complete')
    const isWhole =
      storable.length === done.length && answered.every((each) => each.failed || each.attempt.over === undefined)
    if (!isWhole || storable.length === 0) {
      await this.#rollBack(transaction)
      if (isWhole) return failed.map((each) => this.#ending(each))
      const others = done.map((ending) => (ending.kind === 'complete' ? released(ending.attempt) : ending))
      return [...others, ...failed.map(({ attempt }) => released(attempt))].filter(isLive)
    }
    let outcomes: HoldOutcome[]
    try {
      const completions = storable.map(({ id, fence, result }) => ({ id, fence, result }))
      outcomes = await transaction.complete(this.#settings.queue, completions)
    } catch (error) {
      await this.#rollBack(transaction)
      return live.filter(isLive).map(({ attempt }) => this.#verdicts.failed(attempt, error))
    }
    const isCommitted = !outcomes.includes('stale')
    return [
      ...storable.map(({ attempt, value }, index): Ending | Committed => {
        const outcome = outcomes[index] ?? 'stale'
        if (isCommitted || outcome === 'stale') return { kind: 'committed', attempt, value, outcome }
        return released(attempt)
      }),
      ...failed.map((each) => (isCommitted ? this.#ending(each) : released(each.attempt))),
    ]
  }

  async #rollBack(transaction: StoreTransaction): Promise<void> {
    try {
      await transaction.rollback()
    } catch (failure) {
      if (failure instanceof MillpondError) this.#told.trouble(failure)
    }
  }
}

const isLive = ({ attempt }: { attempt: Attempt }): boolean => attempt.over === undefined
