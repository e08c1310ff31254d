/** What an isolated handler is given beside its jobs. */

import { encode } from '../../values/encoding/encoding.ts'
import { isMillpondError, MillpondError } from '../../values/errors/errors.ts'
import { UnsentLog } from '../../values/jobs/job-log.ts'
import type { ParentJob } from '../../values/jobs/parent-jobs.ts'
import type { Encoded, Park } from '../../values/jobs/records.ts'
import type { Duration } from '../../values/time/duration.ts'
import { kindOf, shown } from '../../values/time/duration.ts'
import type { BatchContext } from '../batch-context.ts'
import type { Context } from '../context.ts'
import { Outcome } from '../outcome.ts'
import { HandlerSteps } from '../steps/handler-steps.ts'
import type { StepsHost } from '../steps/parking.ts'
import type { Steps } from '../steps/step-context.ts'
import { IN_BATCH, WithSteps } from '../steps/with-steps.ts'
import type { Asked, AskedName, FromProcess, JobMessage, Load } from './messages.ts'
import type { Questions } from './questions.ts'

/** Milliseconds between two reports of a job to the worker. The first goes out at once: a handler that spins has no timers. */
const REPORT_EVERY = 100

export interface CallContext {
  /** @param at the place of the job */
  of(at: number): Context
  readonly batch: BatchContext
  abort(at: number, reason: Error): void
  /** Settles when the job at this place is parked. */
  parked(at: number): Promise<void>
  /** undefined: it is not parked. */
  parkOf(at: number): Park | undefined
  /** The handler has answered: what was not reported yet is. */
  end(): void
}

type Terms = Pick<Load, 'maxPayload' | 'lacksRates' | 'batch'>

export function callContext(
  jobs: readonly JobMessage[],
  terms: Terms,
  tell: (message: FromProcess) => void,
  questions: Questions,
): CallContext {
  const contexts = jobs.map((job, at) => {
    const reports: Reports = {
      progress: (value) => tell({ millpond: 'progress', at, value }),
      log: (lines) => tell({ millpond: 'log', at, lines }),
      ask: (what, given) => questions.ask((question) => tell({ millpond: 'ask', at, question, what, given })),
    }
    return new ChildContext(terms, job, reports)
  })
  const whole = new AbortController()
  const places = new Map(jobs.map(({ id }, at) => [id, at]))
  const of = (at: number): ChildContext => contexts[at] ?? notOfThisBatch(at)
  return {
    of,
    batch: {
      signal: whole.signal,
      of: ({ id }) => of(places.get(id) ?? notOfThisBatch(id)),
      get tx() {
        return refuseTransaction()
      },
      retry: Outcome.retry,
      giveUp: Outcome.giveUp,
      rateLimited: (pause) => rateLimited(terms, pause),
    },
    abort(at, reason) {
      of(at).abort(reason)
      if (contexts.every(({ signal }) => signal.aborted)) whole.abort(reason)
    },
    parked: (at) => of(at).parked,
    parkOf: (at) => of(at).givenPark,
    end() {
      for (const context of contexts) context.end()
    },
  }
}

/** What a job tells the worker. */
interface Reports {
  progress(value: Encoded): void
  log(lines: readonly string[]): void
  ask<Name extends AskedName>(what: Name, given: Asked[Name]['given']): Promise<Asked[Name]['told']>
}

class ChildContext extends WithSteps implements Context, StepsHost {
  readonly #terms: Terms
  readonly claimed: { readonly id: string; readonly attempt: number }
  readonly #tell: Reports
  readonly #log = new UnsentLog()
  readonly #controller = new AbortController()
  readonly signal = this.#controller.signal
  #unreported: Encoded | undefined
  #reportedAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #ended = false
  #steps: Steps | undefined
  givenPark: Park | undefined
  readonly #parked = Promise.withResolvers<void>()

  constructor(terms: Terms, { id, attempt }: JobMessage, tell: Reports) {
    super()
    this.#terms = terms
    this.claimed = { id, attempt }
    this.#tell = tell
  }

  get parked(): Promise<void> {
    return this.#parked.promise
  }

  park(park: Park): void {
    const { id } = this.claimed
    this.givenPark = park
    this.abort(new MillpondError('JobParked', `job ${id} is parked, so this attempt is over`, { id }))
    this.#parked.resolve()
  }

  get stopped(): MillpondError | undefined {
    return isMillpondError(this.signal.reason) ? this.signal.reason : undefined
  }

  whenStopped(listener: (reason: MillpondError) => void): void {
    const stop = () => this.stopped !== undefined && listener(this.stopped)
    if (this.signal.aborted) stop()
    else this.signal.addEventListener('abort', stop, { once: true })
  }

  protected steps(): Steps {
    if (this.#terms.batch) throw new MillpondError('InvalidOption', IN_BATCH)
    this.#steps ??= new HandlerSteps(this, {
      write: (entries) => this.#tell.ask('write', entries),
      read: async () => {
        const { entries, now } = await this.#tell.ask('read', undefined)
        const at = performance.now()
        return { entries, now: () => now + performance.now() - at }
      },
      find: (id) => this.#tell.ask('find', id),
      begin: refuseTransaction,
    })
    return this.#steps
  }

  progress(value: unknown): void {
    this.#unreported = encode(value, 'progress', this.#terms.maxPayload)
    this.#reportSoon()
  }

  log(message: string, fields?: Readonly<Record<string, unknown>>): void {
    this.#log.add(this.claimed.attempt, Date.now(), message, fields)
    this.#reportSoon()
  }

  #reportSoon(): void {
    const left = this.#reportedAt + REPORT_EVERY - performance.now()
    if (left <= 0) this.#report()
    else this.#timer ??= setTimeout(() => this.#report(), left).unref()
  }

  async parents<Result>(): Promise<ParentJob<Result>[]> {
    if (this.#ended) throw new MillpondError('StaleAttempt', 'ctx.parents: the handler has returned')
    // As with other results, the caller has said what they are.
    return [...(await this.#tell.ask('parents', undefined))] as ParentJob<Result>[]
  }

  retry(delay: Duration, reason?: unknown): Outcome {
    return Outcome.retry(delay, reason)
  }

  giveUp(reason?: unknown): Outcome {
    return Outcome.giveUp(reason)
  }

  rateLimited(pause: Duration): Outcome {
    return rateLimited(this.#terms, pause)
  }

  get tx(): never {
    return refuseTransaction()
  }

  get replica(): never {
    const advice = 'open a client of your own in the module of the handler'
    throw new MillpondError('NotSupported', `ctx.replica does not reach an isolated handler: ${advice}`)
  }

  abort(reason: Error): void {
    this.#controller.abort(reason)
  }

  end(): void {
    this.#ended = true
    this.#report()
  }

  #report(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const value = this.#unreported
    if (value === undefined && this.#log.isEmpty) return
    this.#unreported = undefined
    this.#reportedAt = performance.now()
    if (value !== undefined) this.#tell.progress(value)
    if (this.#log.isEmpty) return
    this.#tell.log(this.#log.lines)
    this.#log.sent(this.#log.count)
  }
}

function rateLimited({ lacksRates }: Terms, pause: Duration): Outcome {
  if (lacksRates !== null) throw new MillpondError('NotSupported', lacksRates)
  return Outcome.rateLimited(pause)
}

function refuseTransaction(): never {
  const advice = 'write with a client of your own, and pass it job.fence'
  throw new MillpondError('NotSupported', `ctx.tx does not reach an isolated handler: ${advice}`)
}

function notOfThisBatch(id: unknown): never {
  const got = typeof id === 'string' ? shown(id) : kindOf(id)
  throw new MillpondError('InvalidOption', `ctx.of takes a job of this batch; got one with the id ${got}`)
}
