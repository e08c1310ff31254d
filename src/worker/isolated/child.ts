/**
 * The main program of a handler's process: loads the module, calls its handler, answers. It ends with the worker's process: at the end of
 * the channel, or by the watchdog.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { encode } from '../../values/encoding/encoding.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { Job } from '../../values/jobs/job.ts'
import { kindOf } from '../../values/time/duration.ts'
import { type Answer, answersOf, failedAll } from '../batch-answers.ts'
import type { BatchHandler } from '../batch-context.ts'
import { isOutcome, Outcome } from '../outcome.ts'
import type { Handler } from '../single-runner.ts'
import { type CallContext, callContext } from './child-context.ts'
import { errorMessage, errorOf, failureMessage } from './error-message.ts'
import { type AnswerMessage, type FromProcess, isToProcess, type JobMessage, type Load, type Run } from './messages.ts'
import { Questions } from './questions.ts'
import { Watchdog } from './watch.ts'

interface Loaded {
  terms: Load
  watchdog: Watchdog
  call(run: Run, context: CallContext): Promise<Answer[]>
}

let loaded: Loaded | undefined
/** Of the call that is under way. */
let context: CallContext | undefined
/** The call that is under way, or the last one; 0: the module is loading. */
let present = 0
/** The call in which something runs, also when it is over. */
const calls = new AsyncLocalStorage<number>()

const questions = new Questions()
/** Taken before the module is loaded, which may replace it. */
const send = process.send?.bind(process)
const memory = (): number => process.memoryUsage.rss()

/** Says what belongs to a call. */
const teller = (token: string, call: number) => (message: FromProcess) => void send?.({ token, call, message })

async function load(terms: Load): Promise<void> {
  const tell = teller(terms.token, present)
  try {
    const watchdog = await Watchdog.start(terms.limits, terms.token)
    watchdog.advance()
    const call = callOf(await import(terms.module), terms)
    watchdog.advance()
    loaded = { terms, watchdog, call }
    tell({ millpond: 'loaded', memory: memory() })
  } catch (thrown) {
    const { message, stack, ...error } = errorMessage(thrown)
    tell({
      millpond: 'refused',
      error: { ...error, message: withoutImporter(message), stack: stack && withoutImporter(stack) },
    })
  }
}

/** The loader says which module has imported the missing one: in the published package a data: URL with all of this code. */
const withoutImporter = (text: string): string => text.replace(/ imported from data:\S+/, '')

/** @throws HandlerNotLoaded */
function callOf(module: { default?: unknown }, { batch }: Load): Loaded['call'] {
  const handler = module.default
  if (typeof handler !== 'function') {
    const message = `its default export must be the handler, a function; it is ${kindOf(handler)}`
    throw new MillpondError('HandlerNotLoaded', message)
  }
  if (batch) {
    const handle = handler as BatchHandler
    return async (run, ctx) => {
      const jobs = run.jobs.map(jobOf)
      return answersOf(
        jobs.map(({ id }) => id),
        await handle(jobs, ctx.batch),
      )
    }
  }
  const handle = handler as Handler
  return async (run, ctx) => {
    // That of a parked job never answers.
    const values = run.jobs.map((job, at) => Promise.race([handle(jobOf(job), ctx.of(at)), ctx.parked(at)]))
    return (await Promise.all(values)).map((value) => ({ failed: false, value }))
  }
}

const jobOf = ({ queue, data, ...claimed }: JobMessage): Job => new Job(queue, claimed, data)

async function run({ terms, watchdog, call }: Loaded, message: Run): Promise<void> {
  present = message.call
  const tell = teller(terms.token, present)
  const calling = callContext(message.jobs, terms, tell, questions)
  context = calling
  watchdog.advance()
  let answers: Answer[]
  try {
    answers = await call(message, calling)
  } catch (thrown) {
    const ids = message.jobs.map(({ id }) => id)
    answers = failedAll(ids, thrown)
  }
  const messages = answers.map((answer, at) => {
    const park = calling.parkOf(at)
    return park === undefined ? answerMessage(answer, terms) : ({ is: 'parked', park } as const)
  })
  watchdog.advance()
  calling.end()
  context = undefined
  tell({ millpond: 'answered', answers: messages, memory: memory() })
}

/** The result is encoded here, where its classes and getters are. */
function answerMessage({ failed, value }: Answer, { maxPayload }: Load): AnswerMessage {
  if (failed || isOutcome(value)) return failureMessage(value)
  if (value === undefined) return { is: 'result', result: null }
  try {
    return { is: 'result', result: encode(value, 'result', maxPayload) }
  } catch (error) {
    // As in the worker's process: another attempt would only end here again.
    return failureMessage(Outcome.giveUp(error))
  }
}

/** An error of the call that is under way, or of nobody known, ends the process. One of an earlier call harms no other. */
function uncaught(thrown: unknown, token: string): void {
  const call = calls.getStore()
  const isLate = call !== undefined && (call !== present || context === undefined)
  if (isLate) teller(token, call)({ millpond: 'late' })
  // The module may have a listener of its own, which decides.
  if (process.listenerCount('uncaughtException') > 1) return
  console.error(thrown)
  if (!isLate) process.exit(1)
}

/** Called once, as soon as this module is there. */
export function start(first: Load): void {
  // Signals to the whole group of processes are for the worker, which ends this one when its jobs are done.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
  process.on('disconnect', () => process.exit())
  process.on('message', (message) => {
    if (!isToProcess(message)) return
    if (message.millpond === 'abort') context?.abort(message.at, errorOf(message.reason))
    else if (message.millpond === 'told') questions.told(message)
    else if (loaded !== undefined) void calls.run(message.call, run, loaded, message)
  })
  process.on('uncaughtException', (thrown) => uncaught(thrown, first.token))
  void load(first)
}
