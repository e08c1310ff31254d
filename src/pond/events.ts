import { EventEmitter } from 'node:events'
import type { JobError } from '../store.ts'
import { kindOf, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { SilentFailures } from './silent-failures.ts'

/** A job concerned by an event. */
export interface JobEvent {
  queue: string
  id: string
}
export interface AttemptEvent extends JobEvent {
  attempt: number
  priority: number
}
/** Milliseconds: from due to started, and from started to finished. */
export interface Timings {
  wait: number
  run: number
}

/**
 * What a pond tells while it works, of the jobs that pass through this process. Events of one attempt come in their order; the
 * next attempt may be told to have `started` before the last one is told to have `failed`, since the store knew it first.
 */
export interface PondEvents {
  /** The store has it. `existing`: a live job had the key, or the id was known. */
  pushed: [event: JobEvent & { existing: boolean }]
  started: [event: AttemptEvent & { wait: number }]
  /** The store has the completion. */
  completed: [event: AttemptEvent & Timings & { result: unknown }]
  /** An attempt failed and another will follow. With no listener to this nor to `dead`, each queue and error is shown once as a process warning. */
  failed: [event: AttemptEvent & Timings & { error: JobError }]
  /** No attempt is left, or the handler gave up. Without a listener, each queue and error is shown once as a process warning. */
  dead: [event: AttemptEvent & { error: JobError }]
  cancelled: [event: JobEvent]
  /** The claim was over before the attempt was; what it did was refused by the store. */
  stale: [event: AttemptEvent]
  /** This process found a worker silent past its lease. */
  lost: [event: JobEvent & { attempt: number; state: 'waiting' | 'dead' }]
  /** Claimed ahead of time, not started within the window, given back. */
  released: [event: { queue: string; count: number }]
  /** A push found the queue full. */
  full: [event: { queue: string }]
  /** The store failed in the background; it is tried again. Without a listener, each kind is shown once as a process warning. */
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
  full: true,
  error: true,
}

export class PondEmitter {
  // Untyped inside: EventEmitter's own types cannot follow a generic name to its arguments.
  readonly #emitter: NodeJS.EventEmitter = new EventEmitter()
  /** What anybody listens to. */
  readonly #heard = new Set<keyof PondEvents>()
  readonly #warned = new Set<string>()
  readonly #silent = new SilentFailures()

  /** @returns a function that stops it @throws InvalidOption */
  on<Name extends keyof PondEvents>(name: Name, listener: (...args: PondEvents[Name]) => void): () => void {
    if (!Object.hasOwn(NAMES, name)) {
      throw new MillpondError(
        'InvalidOption',
        `on: there is no event ${shown(name)}; known are ${Object.keys(NAMES).join(', ')}`,
      )
    }
    if (typeof listener !== 'function') {
      throw new MillpondError(
        'InvalidOption',
        `on: the listener of ${name} must be a function; got ${kindOf(listener)}`,
      )
    }
    // A function of its own, so that to stop twice does not stop the same listener where it listens a second time.
    const own = (...args: unknown[]) => (listener as (...args: unknown[]) => void)(...args)
    this.#emitter.on(name, own)
    this.#heard.add(name)
    return () => {
      this.#emitter.off(name, own)
      if (this.#emitter.listenerCount(name) === 0) this.#heard.delete(name)
    }
  }

  /** Asked before an event is put together that many jobs would pay for. */
  has(name: keyof PondEvents): boolean {
    return this.#heard.size > 0 && this.#heard.has(name)
  }

  /** A listener that throws is an uncaught exception, as with any emitter, but it must not break the bookkeeping that told it. */
  emit<Name extends keyof PondEvents>(name: Name, ...args: PondEvents[Name]): void {
    try {
      this.#emitter.emit(name, ...args)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }

  /** An attempt failed by an error that its handler did not decide on. @param last no attempt is left */
  failure(queue: string, error: unknown, last: boolean): void {
    if (!this.has('dead') && (last || !this.has('failed'))) this.#silent.tell(queue, error)
  }

  /** An error that no caller is there to receive. */
  trouble(error: MillpondError): void {
    if (this.has('error')) this.emit('error', error)
    else if (!this.#warned.has(error.code)) {
      this.#warned.add(error.code)
      process.emitWarning(`${error.message} (further ones are not shown; listen to the pond's 'error' event)`, {
        type: 'MillpondWarning',
        code: error.code,
      })
    }
  }
}
