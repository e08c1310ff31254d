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

import type { HoldOutcome, StoreTransaction } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import type { Job } from '../values/job.ts'
import type { Attempt } from './attempt.ts'
import type { Batch } from './batch.ts'
import { type Answer, answersOf, failedAll } from './batch-answers.ts'
import type { BatchHandler } from './batch-context.ts'
import { type Committed, completed, type Ending, released } from './ending-batches.ts'
import { RunnerBase } from './runner-base.ts'

/** Of an attempt that the handler was given. */
interface Answered extends Answer {
  attempt: Attempt
}

export class BatchRunner extends RunnerBase<BatchHandler> {
  /** Never rejects. */
  readonly run = inThisContext((batch: Batch): Promise<void> => this.#run(batch))

  async #run(batch: Batch): Promise<void> {
    for (const attempt of batch.attempts) this.watchTimeout(attempt)
    const jobs = await this.#jobsOf(batch)
    if (jobs.size > 0) {
      const answered = await this.#call(batch, jobs)
      const { transaction } = batch
      if (transaction === undefined) this.ended(answered.filter(isLive).map((each) => this.#ending(each)))
      else this.ended(await this.#endingsOf(answered, transaction))
    }
    for (const { timeout } of batch.attempts) clearTimeout(timeout)
  }

  /** Of the attempts whose data can be used and that are not over by then. */
  async #jobsOf({ attempts }: Batch): Promise<Map<Attempt, Job>> {
    const jobs = new Map<Attempt, Job | undefined>(attempts.map((attempt) => [attempt, undefined]))
    const made = attempts.map(async (attempt) => {
      try {
        jobs.set(attempt, await this.jobOf(attempt))
      } catch (error) {
        if (attempt.over === undefined) this.ended([this.failed(attempt, error)])
      }
    })
    await Promise.all(made)
    const usable = [...jobs].filter(
      (each): each is [Attempt, Job] => each[1] !== undefined && each[0].over === undefined,
    )
    return new Map(usable)
  }

  async #call(batch: Batch, jobs: ReadonlyMap<Attempt, Job>): Promise<Answered[]> {
    const ids = [...jobs.values()].map(({ id }) => id)
    let answers: Answer[]
    try {
      if (this.settings.transaction) batch.transaction = this.store.transactions?.begin()
      answers = answersOf(ids, await this.handler([...jobs.values()], batch))
    } catch (error) {
      answers = failedAll(ids, error)
    }
    return [...jobs.keys()].map((attempt, index) => ({ attempt, ...(answers[index] as Answer) }))
  }

  #ending({ attempt, failed, value }: Answered): Ending {
    if (failed) return this.failed(attempt, value)
    try {
      return completed(attempt, this.result(value), value)
    } catch (outcome) {
      return this.failed(attempt, outcome)
    }
  }

  async #endingsOf(answered: Answered[], transaction: StoreTransaction): Promise<(Ending | Committed)[]> {
    const live = answered.filter(isLive)
    for (const { attempt } of live) attempt.ending = true
    const failed = live.filter((each) => each.failed)
    const done = live.filter((each) => !each.failed).map((each) => this.#ending(each))
    const storable = done.filter((ending) => ending.kind === 'complete')
    const isWhole =
      storable.length === done.length && answered.every((each) => each.failed || each.attempt.over === undefined)
    if (!isWhole || storable.length === 0) {
      await this.rollBack(transaction)
      if (isWhole) return failed.map((each) => this.#ending(each))
      const others = done.map((ending) => (ending.kind === 'complete' ? released(ending.attempt) : ending))
      return [...others, ...failed.map(({ attempt }) => released(attempt))].filter(isLive)
    }
    let outcomes: HoldOutcome[]
    try {
      const completions = storable.map(({ id, fence, result }) => ({ id, fence, result }))
      outcomes = await transaction.complete({ queue: this.settings.queue, items: completions })
    } catch (error) {
      await this.rollBack(transaction)
      return live.filter(isLive).map(({ attempt }) => this.failed(attempt, error))
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
}

const isLive = ({ attempt }: { attempt: Attempt }): boolean => attempt.over === undefined
