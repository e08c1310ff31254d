import type { Duration } from '../values/duration.ts'
import { milliseconds } from '../values/duration.ts'

/**
 * What a handler decides about its job instead of finishing it. Return it or throw it; both mean the same,
 * so it also works from deep inside the handler's own calls.
 */
export class Outcome extends Error {
  override readonly name = 'Outcome'
  /** Milliseconds until the next attempt; null: no further attempt. */
  readonly delay: number | null

  private constructor(message: string, delay: number | null, cause: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.delay = delay
  }

  /** Another attempt after the delay, whatever the queue's backoff says. It counts as one, so `attempts` still bounds it. @throws InvalidOption */
  static retry(delay: Duration, reason?: unknown): Outcome {
    return new Outcome(
      text(reason, 'the handler asked for another attempt'),
      milliseconds(delay, 'retry delay'),
      reason,
    )
  }

  /** The job is dead at once, with the reason. */
  static giveUp(reason?: unknown): Outcome {
    return new Outcome(text(reason, 'the handler gave up'), null, reason)
  }
}

/** `instanceof`, for whatever a handler returned or threw: a proxy's trap may throw. */
export function isOutcome(value: unknown): value is Outcome {
  try {
    return value instanceof Outcome
  } catch {
    return false
  }
}

function text(reason: unknown, otherwise: string): string {
  if (reason instanceof Error) return reason.message
  return typeof reason === 'string' ? reason : otherwise
}
