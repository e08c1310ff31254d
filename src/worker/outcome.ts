import { isError } from '../values/runtime/realms.ts'
import { type Duration, LONGEST_TIMER, milliseconds } from '../values/time/duration.ts'

/** Known by this, not by the class: an isolated handler may throw an outcome of another copy of this library. */
const BRAND = Symbol.for('millpond.outcome')

/**
 * What a handler decides about its job instead of finishing it. Return it or throw it; both mean the same,
 * so it also works from deep inside the handler's own calls.
 */
export class Outcome extends Error {
  override readonly name = 'Outcome'
  readonly kind: 'retry' | 'giveUp' | 'rateLimited'
  /** Milliseconds until the next attempt, or for which nothing of its group starts; null: no further attempt. */
  readonly delay: number | null

  private constructor(kind: Outcome['kind'], message: string, delay: number | null, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
    this.delay = delay
  }

  get [BRAND](): true {
    return true
  }

  /** Another attempt after the delay, whatever the backoff says. It counts as one, so `attempts` still bounds it. @throws InvalidOption */
  static retry(delay: Duration, reason?: unknown): Outcome {
    const message = text(reason, 'the handler asked for another attempt')
    return new Outcome('retry', message, milliseconds(delay, 'retry delay'), reason)
  }

  /** The job is dead at once, with the reason. */
  static giveUp(reason?: unknown): Outcome {
    return new Outcome('giveUp', text(reason, 'the handler gave up'), null, reason)
  }

  /**
   * The other side asked for a pause. The job waits again, without an attempt being counted, and its group starts no job for so long. The
   * queue pauses instead if the job has no group or groups do not take turns there. All workers obey. @throws InvalidOption
   */
  static rateLimited(pause: Duration): Outcome {
    const ms = milliseconds(pause, 'pause', 1, LONGEST_TIMER)
    return new Outcome('rateLimited', 'the handler was rate limited', ms)
  }
}

/** The handler was not called, and its job is given back without an attempt: no process has its module. */
export class NotStarted extends Error {
  readonly #isNotStarted = true

  /** For whatever a handler threw: `instanceof` would call a proxy's trap. */
  static is(value: unknown): value is NotStarted {
    return typeof value === 'object' && value !== null && #isNotStarted in value && value.#isNotStarted
  }

  constructor(cause: unknown) {
    super('the handler was not called', { cause })
  }
}

/** For whatever a handler returned or threw: a proxy's trap may throw. */
export function isOutcome(value: unknown): value is Outcome {
  try {
    return typeof value === 'object' && value !== null && BRAND in value
  } catch {
    return false
  }
}

function text(reason: unknown, otherwise: string): string {
  if (isError(reason)) return reason.message
  return typeof reason === 'string' ? reason : otherwise
}
