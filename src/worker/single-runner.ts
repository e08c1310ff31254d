/** Runs one attempt at a time through the handler and says how it ends. */

import type { ReplicaQuery, StoreTransaction } from '../store.ts'
import { inThisContext } from '../values/async-context.ts'
import { decode } from '../values/encoding.ts'
import { Job } from '../values/job.ts'
import type { Attempt } from './attempt.ts'
import { AttemptContext } from './attempt-context.ts'
import type { Context } from './context.ts'
import type { Ending, Untold } from './ending.ts'
import type { Replica } from './replica.ts'
import type { RunnerTools } from './runner.ts'

/** Runs one job. What it returns is the job's result. */
export type Handler<Data = unknown, Result = unknown> = (job: Job<Data>, ctx: Context) => Result | Promise<Result>

export class SingleRunner {
  readonly #tools: RunnerTools
  readonly #handler: Handler

  constructor(tools: RunnerTools, handler: Handler) {
    this.#tools = tools
    this.#handler = handler
  }

  /** Says how the attempt ends once, some time later; never, if it is stopped before. */
  readonly run = inThisContext((attempt: Attempt): void => {
    const { replica } = this.#tools.settings
    if (replica === undefined) this.#start(attempt)
    else void this.#startWhenShown(attempt, replica)
  })

  async #startWhenShown(attempt: Attempt, replica: Replica): Promise<void> {
    const shown = replica.wait(attempt)
    if (await attempt.waitFor(shown)) this.#start(attempt, await shown)
  }

  #start(attempt: Attempt, reads?: ReplicaQuery): void {
    const { settings, rules } = this.#tools
    this.#tools.watchTimeout(attempt)
    if (settings.transaction) {
      void this.#transact(attempt, reads)
      return
    }
    const called = settings.schema === undefined ? this.#call(attempt, reads) : this.#checkAndCall(attempt, reads)
    // An async function around this would cost as much as all else that is done here for a handler that does little.
    called.then(
      (value) => this.#end(attempt, attempt.stopped === undefined ? rules.answered(attempt, value) : undefined),
      (error: unknown) => this.#end(attempt, attempt.stopped === undefined ? rules.failed(attempt, error) : undefined),
    )
  }

  /** Never throws: whatever the handler throws is in the promise. */
  #call(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<unknown> {
    const { settings, terms } = this.#tools
    try {
      const job = new Job(settings.queue, attempt.claimed, decode(attempt.claimed.data, 'data'))
      return Promise.resolve(this.#handler(job, new AttemptContext(attempt, terms, undefined, reads)))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #checkAndCall(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<unknown> {
    const job = await this.#tools.job(attempt)
    return this.#handler(job, new AttemptContext(attempt, this.#tools.terms, undefined, reads))
  }

  async #transact(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<void> {
    const { rules, terms } = this.#tools
    let transaction: StoreTransaction | undefined
    let ending: Untold | undefined
    try {
      const job = await this.#tools.job(attempt)
      transaction = this.#tools.begin(attempt)
      const value = await this.#handler(job, new AttemptContext(attempt, terms, transaction, reads))
      if (attempt.stopped === undefined) ending = rules.answered(attempt, value)
    } catch (error) {
      if (attempt.stopped === undefined) ending = rules.failed(attempt, error)
    }
    this.#end(attempt, ending === undefined ? undefined : await this.#commit(attempt, transaction, ending))
  }

  /** @returns undefined: stopped meanwhile */
  async #commit(
    attempt: Attempt,
    transaction: StoreTransaction | undefined,
    ending: Untold,
  ): Promise<Ending | undefined> {
    attempt.end()
    let actual = ending
    if (transaction !== undefined && ending.kind === 'complete') {
      try {
        const [committed] = await this.#tools.commit(transaction, [ending])
        return committed
      } catch (error) {
        if (attempt.stopped !== undefined) return undefined
        actual = this.#tools.rules.failed(attempt, error)
      }
    }
    await this.#tools.rollBack(transaction)
    return actual
  }

  #end(attempt: Attempt, ending: Ending | undefined): void {
    if (attempt.timeout !== undefined) clearTimeout(attempt.timeout)
    if (ending !== undefined) this.#tools.end([ending])
  }
}
