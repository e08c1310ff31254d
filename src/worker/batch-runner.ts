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
import type { Job } from '../values/jobs/job.ts'
import { inThisContext } from '../values/runtime/async-context.ts'
import { runCalls } from '../values/runtime/published-calls.ts'
import type { Attempt } from './attempt.ts'
import type { Batch } from './batch.ts'
import { type Answer, answersOf, failedAll } from './batch-answers.ts'
import { type BatchContext, type BatchHandler, batchContext } from './batch-context.ts'
import { type Ending, released, type Untold } from './ending.ts'
import { publishedRun } from './published-run.ts'
import type { RunnerTools } from './runner.ts'

/** Of an attempt that the handler was given. */
interface Answered extends Answer {
  attempt: Attempt
}

/** @returns runs a batch; never rejects */
export function batchRunner(tools: RunnerTools, handler: BatchHandler): (batch: Batch) => Promise<void> {
  const { rules } = tools

  /** Of the attempts whose data can be used and that are not stopped by then. */
  async function jobsOf({ attempts }: Batch): Promise<Map<Attempt, Job>> {
    const jobs = attempts.map(async (attempt) => {
      try {
        return [[attempt, await tools.job(attempt)] as const]
      } catch (error) {
        if (isLive({ attempt })) tools.end([rules.ofError(attempt, error)])
        return []
      }
    })
    const usable = (await Promise.all(jobs)).flat()
    return new Map(usable.filter(([attempt]) => isLive({ attempt })))
  }

  function handle(batch: Batch, jobs: ReadonlyMap<Attempt, Job>, context: BatchContext): unknown {
    const given = [...jobs.values()]
    if (!runCalls.hasSubscribers) return handler(given, context)
    const whenStopped = batch.whenStopped.bind(batch)
    const run = { queue: tools.settings.queue, isBatch: true, attempts: jobs.keys(), whenStopped }
    return publishedRun(run, () => handler(given, context))
  }

  async function endingsOf(batch: Batch, jobs: ReadonlyMap<Attempt, Job>): Promise<Ending[]> {
    const ids = [...jobs.values()].map(({ id }) => id)
    let transaction: StoreTransaction | undefined
    let answers: Answer[]
    try {
      transaction = tools.begin(batch)
      const context = batchContext(batch, tools.terms, transaction)
      answers = answersOf(ids, await handle(batch, jobs, context))
    } catch (error) {
      answers = failedAll(ids, error)
    }
    const answered = [...jobs.keys()].map((attempt, index) => ({ attempt, ...(answers[index] as Answer) }))
    return transaction === undefined ? answered.filter(isLive).map(endingOf) : commit(answered, transaction)
  }

  const endingOf = ({ attempt, failed, value }: Answered): Untold =>
    failed ? rules.ofError(attempt, value) : rules.ofAnswer(attempt, value)

  async function commit(answered: Answered[], transaction: StoreTransaction): Promise<Ending[]> {
    const live = answered.filter(isLive)
    for (const { attempt } of live) attempt.end()
    const failed = live.filter((each) => each.failed)
    const done = live.filter((each) => !each.failed).map(endingOf)
    const storable = done.filter((ending) => ending.kind === 'complete')
    const isWhole = storable.length === done.length && answered.every((each) => each.failed || isLive(each))
    if (!isWhole || storable.length === 0) {
      await tools.rollBack(transaction)
      if (isWhole) return failed.map(endingOf)
      const others = done.map((ending) => (ending.kind === 'complete' ? released(ending.attempt) : ending))
      return [...others, ...failed.map(({ attempt }) => released(attempt))].filter(isLive)
    }
    try {
      const committed = await tools.commit(transaction, storable)
      const isCommitted = committed.every(({ outcome }) => outcome === 'ok')
      return [
        ...committed.map((each) => (isCommitted || each.outcome === 'stale' ? each : released(each.attempt))),
        ...failed.map((each) => (isCommitted ? endingOf(each) : released(each.attempt))),
      ]
    } catch (error) {
      await tools.rollBack(transaction)
      return live.filter(isLive).map(({ attempt }) => rules.ofError(attempt, error))
    }
  }

  return inThisContext(async (batch) => {
    for (const attempt of batch.attempts) tools.watchTimeout(attempt)
    const jobs = await jobsOf(batch)
    if (jobs.size > 0) tools.end(await endingsOf(batch, jobs))
    for (const { deadline } of batch.attempts) deadline?.cancel()
  })
}

const isLive = ({ attempt }: { attempt: Attempt }): boolean => attempt.stopped === undefined
