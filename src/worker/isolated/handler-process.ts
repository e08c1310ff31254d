/**
 * The worker's end of one process with a handler in it.
 *
 *   starting ──loaded──► idle ◄──answered── running
 *      │                  │                   │
 *      └─ refused ────────┴─── it ended ──────┴──► ended: whoever waits for an answer gets the reason
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { MillpondError } from '../../values/errors/errors.ts'
import { errorSummary, safeText } from '../../values/errors/safe-error.ts'
import { newId } from '../../values/jobs/ids.ts'
import type { Encoded } from '../../values/jobs/records.ts'
import { within } from '../../values/time/within.ts'
import { argumentsFor } from './command.ts'
import { crash, ProcessErrors } from './crash.ts'
import { errorMessage, errorOf } from './error-message.ts'
import {
  type AnswerMessage,
  type AskedName,
  type First,
  type FromProcess,
  isSaid,
  type JobMessage,
  type Load,
  type Said,
  type Told,
  type ToProcess,
} from './messages.ts'

export type HandlerTerms = Omit<Load, 'token'>

/** Calls after which a process is replaced by a fresh one, lest what they leave behind adds up. */
const MAX_CALLS = 1000
/** Of the room for calls: a process that keeps more of it is replaced, lest the next call pays for this one. */
const MAX_KEPT = 0.5
/** Milliseconds for what an ended process has still written to arrive. */
const LAST_WORDS = 250
/** Milliseconds until a process that should end is killed. */
const GRACE = 1000
/** Milliseconds that loading the module may take. */
const LONGEST_LOAD = 30_000

/** What jobs tell while their handler runs; `at`: the place of the job. */
export interface Reports {
  progress(at: number, value: Encoded): void
  log(at: number, lines: readonly string[]): void
  ask(at: number, what: AskedName, given: unknown): Promise<unknown>
}

interface Waiting {
  told(message: FromProcess): void
  ended(reason: MillpondError): void
}

export class HandlerProcess {
  readonly #terms: HandlerTerms
  readonly #child: ChildProcess
  readonly #stderr: ProcessErrors
  #waiting: Waiting | undefined
  #calls = 0
  /** Bytes, once the module was loaded, and after the last call. */
  #memoryAtFirst = 0
  #memory = 0
  /** The call that is under way, or the last one. */
  #call: Promise<unknown> | undefined
  #isOver = false
  /** A call that was over has thrown: what it left behind may harm others. */
  #hasThrown = false
  /** Settles when the process is gone. */
  readonly ended: Promise<void>

  /** @throws HandlerNotLoaded: the system starts no process */
  static start(terms: HandlerTerms): HandlerProcess {
    try {
      return new HandlerProcess(terms)
    } catch (cause) {
      const message = `the process of a handler cannot be started: ${safeText(cause)}`
      throw new MillpondError('HandlerNotLoaded', message, { cause })
    }
  }

  private constructor(terms: HandlerTerms) {
    this.#terms = terms
    const token = newId()
    // Loaded here and not with this module, as most workers isolate nothing.
    const { spawn } = process.getBuiltinModule('node:child_process')
    this.#child = spawn(process.execPath, argumentsFor(terms.limits), {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      serialization: 'advanced',
    })
    this.#stderr = new ProcessErrors(this.#child.stderr, token)
    // Told by `exit`, or by a call without an answer.
    this.#child.on('error', () => {})
    this.#child.on('message', (said) => {
      if (isSaid(said, token)) this.#heard(said)
    })
    this.ended = this.#end()
    void this.#load({ ...terms, token })
  }

  /** Nothing that a process says may harm the worker. */
  #heard({ call, message }: Said): void {
    if (message.millpond === 'late') {
      this.#hasThrown = true
      if (this.#waiting === undefined) void this.stop()
      return
    }
    if (call !== this.#calls) return
    try {
      this.#waiting?.told(message)
    } catch (cause) {
      const what = `the process of the handler said something that cannot be read: ${safeText(cause)}`
      this.#waiting?.ended(new MillpondError('HandlerCrashed', what, { cause }))
      void this.kill()
    }
  }

  async #load(load: Load): Promise<void> {
    const { childCode } = await import('./child-code.ts')
    this.#send({ code: childCode().href, load })
  }

  /** It takes calls. @throws HandlerNotLoaded */
  async loaded(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting = {
      told: (message) => {
        if (message.millpond === 'loaded') {
          this.#memoryAtFirst = message.memory
          resolve()
        } else if (message.millpond === 'refused') reject(this.#notLoaded(errorOf(message.error)))
      },
      ended: (reason) => reject(this.#notLoaded(reason)),
    }
    const late = new MillpondError('TimedOut', `it took more than ${LONGEST_LOAD} ms`)
    const timer = setTimeout(() => reject(this.#notLoaded(late)), LONGEST_LOAD)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      this.#waiting = undefined
    }
  }

  /**
   * @param reports called with what the job at a place tells
   * @returns an answer for each job
   * @throws MemoryExceeded, CpuExceeded, HandlerCrashed: the process is gone. PayloadNotEncodable: it is not
   */
  run(jobs: readonly JobMessage[], reports: Reports): Promise<readonly AnswerMessage[]> {
    const call = this.#run(jobs, reports)
    this.#call = call
    return call
  }

  async #run(jobs: readonly JobMessage[], reports: Reports): Promise<readonly AnswerMessage[]> {
    this.#calls++
    const { promise, resolve, reject } = Promise.withResolvers<readonly AnswerMessage[]>()
    this.#waiting = {
      told: (message) => {
        if (message.millpond === 'progress') reports.progress(message.at, message.value)
        else if (message.millpond === 'log') reports.log(message.at, message.lines)
        else if (message.millpond === 'ask') {
          void this.#answer(message.question, reports.ask(message.at, message.what, message.given))
        } else if (message.millpond === 'answered') {
          this.#memory = message.memory
          resolve(message.answers)
        }
      },
      ended: reject,
    }
    try {
      if (this.#isOver) throw crash(this.#terms.limits, this.#stderr, this.#child)
      this.#send({ millpond: 'run', call: this.#calls, jobs })
      return await promise
    } finally {
      this.#waiting = undefined
    }
  }

  async #answer(question: number, asked: Promise<unknown>): Promise<void> {
    const told = { millpond: 'told', question } as const
    const message: Told = await asked.then(
      // What is asked decides what is answered.
      (answer) => ({ ...told, answer: answer as Told['answer'], error: null }),
      (error: unknown) => ({ ...told, answer: null, error: errorMessage(error) }),
    )
    if (this.#child.connected) this.#send(message)
  }

  abort(at: number, reason: unknown): void {
    if (this.#child.connected) this.#send({ millpond: 'abort', at, reason: errorMessage(reason) })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The module is loaded. */
  get isLoaded(): boolean {
    return this.#memoryAtFirst > 0 && !this.#isOver
  }

  /** Whether the next call should go to another process. */
  get isWorn(): boolean {
    const { memory } = this.#terms.limits
    const room = (memory ?? Number.POSITIVE_INFINITY) - this.#memoryAtFirst
    return this.#hasThrown || this.#calls >= MAX_CALLS || this.#memory - this.#memoryAtFirst > room * MAX_KEPT
  }

  /** Lets it go once its call is over; kills it if that takes longer than a second, or if it does not end by itself. */
  async stop(): Promise<void> {
    if (this.#waiting !== undefined) await within(GRACE, Promise.allSettled([this.#call]))
    if (this.#child.connected) this.#child.disconnect()
    await within(GRACE, this.ended)
    await this.kill()
  }

  kill(): Promise<void> {
    if (!this.#isOver) this.#child.kill('SIGKILL')
    return this.ended
  }

  /** @throws PayloadNotEncodable */
  #send(message: First | ToProcess): void {
    try {
      // How a send fails later is seen by the end of the process.
      this.#child.send(message, () => {})
    } catch (cause) {
      if (!this.#child.connected) return
      const advice = 'a schema must put out plain data, Dates, Maps or bytes'
      const what = `the data of a job cannot be sent to the process of its handler: ${safeText(cause)}`
      throw new MillpondError('PayloadNotEncodable', `${what}; ${advice}`, { cause })
    }
  }

  async #end(): Promise<void> {
    const closed = once(this.#child, 'close')
    closed.catch(() => {})
    // A process that cannot even be started emits an error instead.
    const failure = await once(this.#child, 'exit').then(
      () => undefined,
      (error: unknown) => error,
    )
    this.#isOver = true
    // An answer may have been written just before. A process that the handler has started may hold stderr open for ever.
    if (failure === undefined) await within(LAST_WORDS, closed)
    this.#waiting?.ended(crash(this.#terms.limits, this.#stderr, this.#child, failure))
  }

  #notLoaded(reason: Error): MillpondError {
    const message = `the module of the handler, ${this.#terms.module}, cannot be loaded: ${whyNotLoaded(reason)}`
    const isOwn = reason instanceof MillpondError
    return new MillpondError('HandlerNotLoaded', message, isOwn ? { cause: reason } : { thrown: reason })
  }
}

/** The loader's own errors name modules. What a module throws may hold a secret, so its message is in the cause alone. */
function whyNotLoaded(reason: Error): string {
  if (reason instanceof MillpondError) return reason.message
  const code: unknown = Reflect.get(reason, 'code')
  return typeof code === 'string' && code.startsWith('ERR_') ? safeText(reason) : errorSummary(reason)
}
