import { EventEmitter } from 'node:events'
import { type ErrorCode, MillpondError } from '../errors/errors.ts'
import { errorSummary } from '../errors/safe-error.ts'
import { inThisContext } from '../runtime/async-context.ts'
import type { SettingName } from '../settings/settings.ts'
import { kindOf, shown } from '../time/duration.ts'
import type { JobError } from './records.ts'

/** The job that an event is about. */
export interface JobEvent {
  queue: string
  id: string
}
export interface AttemptEvent extends JobEvent {
  /** Which attempt of the job it is, from 1. */
  attempt: number
  /** 0 to 9, higher first. */
  priority: number
}
/** What somebody did with the dashboard, over HTTP, or with the command line. */
export interface ActionEvent {
  /** As the dashboard's rights name the caller; over HTTP the token's number and the address; else the user of the machine. */
  who: string
  through: 'dashboard' | 'http' | 'cli' | 'mcp'
  /** Such as `requeue`, `pause` or `override`. */
  action: string
  queue: string
  /** The job, where it was one. */
  id?: string
  /** The schedule, where it was one. */
  schedule?: string
  /** The group, where its limits were changed. */
  group?: string
  /** The settings, where they were changed. */
  settings?: readonly string[]
  /** More of what was done, such as `running 1 → 20` or `state: dead, error: …`; no payload, and no text that was searched for in one. */
  detail?: string
  /** How many jobs were changed; of other actions, 1. */
  count: number
}
/** Both in milliseconds. */
export interface Timings {
  /** From due to started. */
  wait: number
  /** From started to finished. */
  run: number
}

/**
 * The events of a pond, for the jobs that this process pushes or runs. Events of one attempt are emitted in order. The next attempt may
 * emit `started` before this one emits `failed`, because the store knew of the failure first.
 */
export interface PondEvents {
  /** The store has the job. `existing`: a live job had the key, or the id was known. Not emitted for a push with `tx`. */
  pushed: [event: JobEvent & { existing: boolean }]
  /** The handler is about to be called. `wait`: milliseconds from due to started. */
  started: [event: AttemptEvent & { wait: number }]
  /** The store has the completion. `result`: what the handler returned. */
  completed: [event: AttemptEvent & Timings & { result: unknown }]
  /** An attempt failed and another will follow. Without a listener for this or `dead`, each queue and error is shown once as a warning. */
  failed: [event: AttemptEvent & Timings & { error: JobError }]
  /** The job is dead: no attempt is left, or the handler gave up. Without a listener, each queue and error is shown once as a warning. */
  dead: [event: AttemptEvent & { error: JobError }]
  /** This process cancelled the job. */
  cancelled: [event: JobEvent]
  /** The claim was over before the attempt was: the lease was lost, or the job was cancelled. The store refused its ending. */
  stale: [event: AttemptEvent]
  /** A sweep of this process ended a lost lease. `attempt`: the lost attempt. `state`: the job waits again, or is dead. */
  lost: [event: JobEvent & { attempt: number; state: 'waiting' | 'dead' }]
  /** Jobs claimed ahead were not started within the window and were given back. `count`: how many. */
  released: [event: { queue: string; count: number }]
  /** A handler answered with `ctx.rateLimited`; the job waits again. `pause`: milliseconds for which its group or queue starts no job. */
  rateLimited: [event: AttemptEvent & { pause: number }]
  /** A push found the queue full: it was rejected, or it waits. Not emitted for a push with `tx`. */
  full: [event: { queue: string }]
  /**
   * An operator's values of these settings stay in effect, not those that this program gives; see `queue.override`. Without a listener, it
   * is shown as a process warning.
   */
  overridden: [event: { queue: string; settings: readonly SettingName[] }]
  /** Somebody has changed something with a dashboard of this pond, or with a service or command that it is part of. */
  action: [event: ActionEvent]
  /** A call to the store failed in the background; it is tried again. Without a listener, each code is shown once as a process warning. */
  error: [error: MillpondError]
}

/** Typed so that an event cannot be missing here. */
const NAMES: Readonly<Record<keyof PondEvents, true>> = {
  pushed: true,
  started: true,
  completed: true,
  failed: true,
  dead: true,
  cancelled: true,
  stale: true,
  lost: true,
  released: true,
  rateLimited: true,
  full: true,
  overridden: true,
  action: true,
  error: true,
}

/** Most failures that are shown as warnings. A process with ever new ones must not fill its memory, nor its log. */
const MAX_WARNINGS = 100

export class PondEmitter {
  // Untyped inside: EventEmitter's own types cannot follow a generic name to its arguments.
  readonly #emitter: NodeJS.EventEmitter = new EventEmitter()
  readonly #heard = new Set<keyof PondEvents>()
  /** Codes of background errors, and queues with their kinds of failures, that were shown as warnings. */
  readonly #warned = new Set<string>()
  readonly #failures = new Set<string>()

  /** @returns a function that removes the listener @throws InvalidOption */
  on<Name extends keyof PondEvents>(name: Name, listener: (...args: PondEvents[Name]) => void): () => void {
    if (!Object.hasOwn(NAMES, name)) {
      const known = Object.keys(NAMES).join(', ')
      throw new MillpondError('InvalidOption', `on: there is no event ${shown(name)}; known are ${known}`)
    }
    if (typeof listener !== 'function') {
      const message = `on: the listener of ${name} must be a function; got ${kindOf(listener)}`
      throw new MillpondError('InvalidOption', message)
    }
    // A new function for each call, so that removing a listener twice does not remove its second registration.
    const own = inThisContext(listener as (...args: unknown[]) => void)
    this.#emitter.on(name, own)
    this.#heard.add(name)
    return () => {
      this.#emitter.off(name, own)
      if (this.#emitter.listenerCount(name) === 0) this.#heard.delete(name)
    }
  }

  /** Whether the event has a listener. Checked first where putting the event together would cost every job. */
  has(name: keyof PondEvents): boolean {
    return this.#heard.size > 0 && this.#heard.has(name)
  }

  /** A listener that throws is an uncaught exception, as with any emitter; it must not break the caller's bookkeeping. */
  emit<Name extends keyof PondEvents>(name: Name, ...args: PondEvents[Name]): void {
    try {
      this.#emitter.emit(name, ...args)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }

  /**
   * An attempt failed by an error, not by `retry` or `giveUp`. Without a listener, the process warns once for each queue and error. The
   * warning names the error's class, code and place in the code. It leaves out the message, which may hold a part of the payload.
   * @param last no attempt is left
   */
  failure(queue: string, error: unknown, last: boolean): void {
    const isHeard = this.has('dead') || (!last && this.has('failed'))
    if (isHeard || this.#failures.size >= MAX_WARNINGS) return
    const text = errorSummary(error)
    // The message of our own errors may name the job, and so differ each time.
    const kind = `${queue} ${text.split(': ', 1)[0]}`
    if (this.#failures.has(kind)) return
    this.#failures.add(kind)
    const full = this.#failures.size === MAX_WARNINGS ? '; no further kinds are shown' : ''
    const advice = `its message is in pond.job(id).error. Listen to the pond's 'failed' and 'dead' events instead`
    warn(`a job of queue ${queue} failed: ${text} (shown once${full}; ${advice})`, 'HandlerFailed')
  }

  /** Once for the settings of a queue, since they are told to the store once. */
  overridden(queue: string, settings: readonly SettingName[]): void {
    if (this.has('overridden')) this.emit('overridden', { queue, settings })
    else warnOverridden(queue, settings)
  }

  /** An error in the background, which no caller gets. */
  trouble(error: MillpondError): void {
    if (this.has('error')) this.emit('error', error)
    else if (!this.#warned.has(error.code)) {
      this.#warned.add(error.code)
      warn(`${error.message} (further ones are not shown; listen to the pond's 'error' event)`, error.code)
    }
  }
}

function warnOverridden(queue: string, settings: readonly SettingName[]): void {
  const what = `queue ${queue} keeps what an operator has set of ${settings.join(', ')}, not what this program gives`
  const message = `${what}; queue.clearOverrides() ends that. Listen to the pond's 'overridden' event instead`
  process.emitWarning(message, { type: 'MillpondWarning', code: 'Overridden' })
}

function warn(message: string, code: ErrorCode): void {
  process.emitWarning(message, { type: 'MillpondWarning', code })
}
