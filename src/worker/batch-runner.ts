/**
 * Runs a batch through the handler and says how each attempt ends.
 *
 *   decoded and checked ──► handler ──► each attempt by its entry of the answer
 *     └─ undecodable, or refused by the schema: this attempt failed
 *
 * With a transaction, the jobs answered as done complete with its commit, all of them or none:
 *
 *   committed ───────────────────────────────► they are done, the others end by their entry
 *   one is stopped or stale, or its result ──► rolled back; it ends as such, all others are released
 *   cannot be stored
 *   none is answered as done ────────────────► rolled back; all end by their entry
 *   the store failed ────────────────────────► all failed
 *
 * Of an attempt that is stopped before the handler has answered, nothing is said here.
 */

import type { StoreTransaction } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import type { Job } from '../values/job.ts'
import type { Attempt } from './attempt.ts'
import type { Batch } from './batch.ts'
import { type Answer, answersOf, failedAll } from './batch-answers.ts'
import { type BatchHandler, RunningBatchContext } from './batch-context.ts'
import { type Ending, released, type Untold } from './ending.ts'
import type { RunnerTools } from './runner.ts'

/** Of an attempt that the handler was given. */
interface Answered extends Answer {
  attempt: Attempt
}

export class BatchRunner {
  readonly #tools: RunnerTools
  readonly #handler: BatchHandler

  constructor(tools: RunnerTools, handler: BatchHandler) {
    this.#tools = tools
    this.#handler = handler
  }

  /** Never rejects. */
  readonly run = inThisContext(async (batch: Batch): Promise<void> => {
    for (const attempt of batch.attempts) this.#tools.watchTimeout(attempt)
    const jobs = await this.#jobsOf(batch)
    if (jobs.size > 0) this.#tools.end(await this.#endings(batch, jobs))
    for (const { timeout } of batch.attempts) clearTimeout(timeout)
  })

  /** Of the attempts whose data can be used and that are not stopped by then. */
  async #jobsOf({ attempts }: Batch): Promise<Map<Attempt, Job>> {
    const made = attempts.map(async (attempt) => {
      try {
        return [attempt, await this.#tools.job(attempt)] as const
      } catch (error) {
        if (isLive({ attempt })) this.#tools.end([this.#tools.rules.failed(attempt, error)])
        return undefined
      }
    })
    const usable = (await Promise.all(made)).filter((each) => each !== undefined)
    return new Map(usable.filter(([attempt]) => isLive({ attempt })))
  }

  async #endings(batch: Batch, jobs: ReadonlyMap<Attempt, Job>): Promise<Ending[]> {
    const ids = [...jobs.values()].map(({ id }) => id)
    let transaction: StoreTransaction | undefined
    let answers: Answer[]
    try {
      transaction = this.#tools.begin(batch)
      const context = new RunningBatchContext(batch, this.#tools.terms, transaction)
      answers = answersOf(ids, await this.#handler([...jobs.values()], context))
    } catch (error) {
      answers = failedAll(ids, error)
    }
    const answered = [...jobs.keys()].map((attempt, index) => ({ attempt, ...(answers[index] as Answer) }))
    if (transaction !== undefined) return this.#commit(answered, transaction)
    return answered.filter(isLive).map((each) => this.#ending(each))
  }

  #ending({ attempt, failed, value }: Answered): Untold {
    return failed ? this.#tools.rules.failed(attempt, value) : this.#tools.rules.answered(attempt, value)
  }

  async #commit(answered: Answered[], transaction: StoreTransaction): Promise<Ending[]> {
    const live = answered.filter(isLive)
    for (const { attempt } of live) attempt.end()
    const failed = live.filter((each) => each.failed)
    const done = live.filter((each) => !each.failed).map((each) => this.#ending(each))
    const storable = done.filter((ending) => ending.kind === 'complete')
    const isWhole = storable.length === done.length && answered.every((each) => each.failed || isLive(each))
    if (!isWhole || storable.length === 0) {
      await this.#tools.rollBack(transaction)
      if (isWhole) return failed.map((each) => this.#ending(each))
      const others = done.map((ending) => (ending.kind === 'complete' ? released(ending.attempt) : ending))
      return [...others, ...failed.map(({ attempt }) => released(attempt))].filter(isLive)
    }
    try {
      const committed = await this.#tools.commit(transaction, storable)
      const isCommitted = committed.every(({ outcome }) => outcome === 'ok')
      return [
        ...committed.map((each) => (isCommitted || each.outcome === 'stale' ? each : released(each.attempt))),
        ...failed.map((each) => (isCommitted ? this.#ending(each) : released(each.attempt))),
      ]
    } catch (error) {
      await this.#tools.rollBack(transaction)
      return live.filter(isLive).map(({ attempt }) => this.#tools.rules.failed(attempt, error))
    }
  }
}

const isLive = ({ attempt }: { attempt: Attempt }): boolean => attempt.stopped === undefined
