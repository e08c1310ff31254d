/** Runs one attempt at a time through the handler and says how it ends. */

import type { ReplicaQuery, StoreTransaction } from '../store.ts'
import { decode } from '../values/encoding/encoding.ts'
import { Job } from '../values/jobs/job.ts'
import { inThisContext } from '../values/runtime/async-context.ts'
import { runCalls } from '../values/runtime/published-calls.ts'
import type { Attempt } from './attempt.ts'
import { AttemptContext } from './attempt-context.ts'
import type { Context } from './context.ts'
import type { Ending, Untold } from './ending.ts'
import { publishedRun } from './published-run.ts'
import type { Replica } from './replica.ts'
import type { RunnerTools } from './runner.ts'

/** Runs one job. What it returns is the job's result. */
export type Handler<Data = unknown, Result = unknown> = (job: Job<Data>, ctx: Context) => Result | Promise<Result>

/** @returns runs an attempt, and says how it ends once, some time later; never, if it is stopped before */
export function singleRunner(tools: RunnerTools, handler: Handler): (attempt: Attempt) => void {
  const { settings, terms, rules } = tools
  const { queue, schema, replica } = settings

  async function startWhenShown(attempt: Attempt, readable: Pick<Replica, 'wait'>): Promise<void> {
    const shown = readable.wait(attempt)
    if (await attempt.awaitReplica(shown)) start(attempt, await shown)
  }

  function start(attempt: Attempt, reads?: ReplicaQuery): void {
    tools.watchTimeout(attempt)
    if (settings.transaction) {
      void transact(attempt, reads)
      return
    }
    // An async function around this would cost as much as all else that is done here for a handler that does little.
    call(attempt, reads).then(
      (value) => end(attempt, attempt.stopped === undefined ? rules.ofAnswer(attempt, value) : undefined),
      (error: unknown) => end(attempt, attempt.stopped === undefined ? rules.ofError(attempt, error) : undefined),
    )
  }

  function handle(attempt: Attempt, job: Job, context: Context): unknown {
    if (!runCalls.hasSubscribers) return handler(job, context)
    const whenStopped = attempt.whenStopped.bind(attempt)
    return publishedRun({ queue, isBatch: false, attempts: [attempt], whenStopped }, () => handler(job, context))
  }

  /** Never throws: whatever the handler throws is in the promise. */
  function call(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<unknown> {
    try {
      if (schema !== undefined) return checkAndCall(attempt, reads)
      const job = new Job(queue, attempt.claimed, decode(attempt.claimed.data, 'data'))
      return Promise.resolve(handle(attempt, job, new AttemptContext(attempt, terms, undefined, reads)))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async function checkAndCall(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<unknown> {
    return handle(attempt, await tools.job(attempt), new AttemptContext(attempt, terms, undefined, reads))
  }

  async function transact(attempt: Attempt, reads: ReplicaQuery | undefined): Promise<void> {
    let transaction: StoreTransaction | undefined
    let ending: Untold | undefined
    try {
      const job = await tools.job(attempt)
      transaction = tools.begin(attempt)
      const value = await handle(attempt, job, new AttemptContext(attempt, terms, transaction, reads))
      if (attempt.stopped === undefined) ending = rules.ofAnswer(attempt, value)
    } catch (error) {
      if (attempt.stopped === undefined) ending = rules.ofError(attempt, error)
    }
    end(attempt, ending === undefined ? undefined : await commit(attempt, transaction, ending))
  }

  /** @returns undefined: stopped meanwhile */
  async function commit(
    attempt: Attempt,
    transaction: StoreTransaction | undefined,
    ending: Untold,
  ): Promise<Ending | undefined> {
    attempt.end()
    let actual = ending
    if (transaction !== undefined && ending.kind === 'complete') {
      try {
        const [committed] = await tools.commit(transaction, [ending])
        return committed
      } catch (error) {
        if (attempt.stopped !== undefined) return undefined
        actual = rules.ofError(attempt, error)
      }
    }
    await tools.rollBack(transaction)
    return actual
  }

  function end(attempt: Attempt, ending: Ending | undefined): void {
    attempt.deadline?.cancel()
    if (ending !== undefined) tools.end([ending])
  }

  return inThisContext((attempt) => {
    if (replica === undefined) start(attempt)
    else void startWhenShown(attempt, replica)
  })
}
