/**
 * Isolated handlers: the worker and its leases are in this process, the handler is in processes of its own, with limits. To the runners
 * it is a handler like any other: it hands the job over, and waits for the answer.
 */

import { decode } from '../../values/encoding/encoding.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { checkId } from '../../values/jobs/ids.ts'
import type { Job } from '../../values/jobs/job.ts'
import { LEFT_OUT, readLogLine } from '../../values/jobs/job-log.ts'
import type { NewEntry } from '../../values/jobs/records.ts'
import { AttemptContext } from '../attempt-context.ts'
import type { BatchHandler } from '../batch-context.ts'
import type { Context } from '../context.ts'
import { EncodedResult } from '../encoded-result.ts'
import type { Handler } from '../single-runner.ts'
import { errorOf, outcomeOf } from './error-message.ts'
import type { HandlerTerms, Reports } from './handler-process.ts'
import type { AnswerMessage, AskedName, JobMessage } from './messages.ts'
import { ProcessPool } from './pool.ts'

/** The handler of a worker in processes of its own. */
export interface Isolated {
  handler: Handler | BatchHandler
  /** Settles when the module is loaded in a process; undefined: it is known to load. @throws HandlerNotLoaded */
  ready(): Promise<void> | undefined
  /** No job will come any more. */
  closing(): void
  /** Resolves when no process is left. */
  close(): Promise<void>
}

/** Starts nothing yet. @param size most processes at once */
export function isolated(terms: HandlerTerms, size: number): Isolated {
  const pool = new ProcessPool(terms, size)
  const single: Handler = async (job, ctx) => {
    const [answer] = await pool.run({ jobs: [messageOf(job)], signals: [ctx.signal], ...reportsTo([ctx]) })
    if (answer?.is === 'parked' && ctx instanceof AttemptContext) {
      ctx.park(answer.park)
      // As a handler of this process that waits.
      return new Promise<never>(() => {})
    }
    const entry = answer === undefined ? undefined : entryOf(answer)
    if (entry instanceof Error) throw entry
    return entry
  }
  const batch: BatchHandler = async (jobs, ctx) => {
    const contexts = jobs.map((job) => ctx.of(job))
    const signals = contexts.map(({ signal }) => signal)
    return (await pool.run({ jobs: jobs.map(messageOf), signals, ...reportsTo(contexts) })).map(entryOf)
  }
  return {
    handler: terms.batch ? batch : single,
    ready: () => pool.ready(),
    closing: () => pool.closing(),
    close: () => pool.close(),
  }
}

/** What the jobs tell goes to their contexts here, which know the store's time. */
function reportsTo(contexts: readonly Context[]): Reports {
  return {
    progress: (at, value) => contexts[at]?.progress(decode(value, 'progress')),
    ask: async (at, what, given) => answerTo(contexts[at], what, given),
    log(at, lines) {
      for (const line of lines) {
        const { message, fields, cut } = readLogLine(line)
        // Fields of no use mark the line as cut, as those that were left out did.
        contexts[at]?.log(message, fields ?? (cut ? LEFT_OUT : undefined))
      }
    },
  }
}

/** @throws StaleAttempt, and as what is asked */
async function answerTo(context: Context | undefined, what: AskedName, given: unknown): Promise<unknown> {
  if (!(context instanceof AttemptContext)) {
    throw new MillpondError('StaleAttempt', 'the handler asks for a job that it does not have')
  }
  if (what === 'parents') return context.parents()
  const calls = context.stepCalls
  if (what === 'read') {
    const { entries, now } = await calls.read()
    return { entries, now: now() }
  }
  if (what === 'find') return calls.find(checkId(given))
  return calls.write(checkEntries(given))
}

/** A handler may send anything on its channel. @throws InvalidOption */
function checkEntries(given: unknown): NewEntry[] {
  const isEntry = (one: unknown): one is NewEntry => {
    if (typeof one !== 'object' || one === null) return false
    const { name, meta, body } = one as Partial<NewEntry>
    return typeof name === 'string' && typeof meta === 'string' && (body === null || typeof body === 'object')
  }
  if (Array.isArray(given) && given.every(isEntry)) return given
  throw new MillpondError('InvalidOption', 'the process of the handler has sent entries that are none')
}

const messageOf = (job: Job): JobMessage => ({
  ...job,
  pushedAt: job.pushedAt.getTime(),
  dueAt: job.dueAt.getTime(),
  ...(job.headers !== null && { headers: job.headers }),
})

/** As in the answer of a batch handler: a result, an Outcome or an Error. */
function entryOf(answer: AnswerMessage): unknown {
  if (answer.is === 'parked')
    return new MillpondError('HandlerCrashed', 'the process of the handler has parked a job of a batch')
  if (answer.is === 'error') return errorOf(answer.error)
  if (answer.is === 'outcome') return outcomeOf(answer)
  return answer.result === null ? undefined : new EncodedResult(answer.result)
}
