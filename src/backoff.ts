/**
 * How long a failed job waits before its next attempt. Pinned by `contract/vectors/backoff.json`.
 *
 *   exponential: base × factor^(attempt − 1), at most `max`     fixed: base
 *   then × (1 − jitter × r), r random in [0, 1)
 *
 * With jitter 1 this is the "full jitter", with 0.5 the "equal jitter" of M. Brooker, "Exponential Backoff And Jitter",
 * AWS Architecture Blog, 2015: without any, jobs that failed together come back together.
 */
import { type Duration, milliseconds, shown } from './duration.ts'
import { MillpondError } from './errors.ts'
import { checkOptions, type Rules } from './options.ts'

export interface BackoffOptions {
  type: 'exponential' | 'fixed'
  /** Delay after the first attempt; 1 s unless set. */
  base?: Duration
  /** 2 unless set; at least 1. */
  factor?: number
  /** Longest delay before jitter; 1 h unless set. */
  max?: Duration
  /** How much of the delay is left to chance, 0 to 1; 0.5 unless set. */
  jitter?: number
}

/** Delay after the given attempt (from 1) failed with the given error. */
export type BackoffFunction = (attempt: number, error: unknown) => Duration

export type Backoff = 'exponential' | 'fixed' | BackoffOptions | BackoffFunction

const RULES: Rules<BackoffOptions> = {
  type: (value) => value === 'exponential' || value === 'fixed' || `'exponential' or 'fixed'`,
  base: (value) => milliseconds(value, 'backoff.base') >= 0,
  factor: (value) => (typeof value === 'number' && value >= 1 && value <= 100) || 'a number from 1 to 100',
  max: (value) => milliseconds(value, 'backoff.max') >= 0,
  jitter: (value) => (typeof value === 'number' && value >= 0 && value <= 1) || 'a number from 0 to 1',
}

/** Milliseconds from the number of the attempt that failed and its error. @throws InvalidOption */
export function backoff(option: Backoff = 'exponential', random: () => number = Math.random) {
  if (typeof option === 'function') {
    return (attempt: number, error: unknown) =>
      milliseconds(option(attempt, error), 'what the backoff function returned')
  }
  if (typeof option !== 'string' && (typeof option !== 'object' || option === null)) {
    throw new MillpondError(
      'InvalidOption',
      `retry.backoff must be 'exponential', 'fixed', an object or a function; got ${shown(option)}`,
    )
  }
  const given = checkOptions(typeof option === 'string' ? { type: option } : option, RULES, 'retry.backoff', ['type'])
  const base = milliseconds(given.base ?? '1s', 'backoff.base')
  const max = milliseconds(given.max ?? '1h', 'backoff.max')
  const factor = given.type === 'fixed' ? 1 : (given.factor ?? 2)
  const jitter = given.jitter ?? 0.5
  return (attempt: number) => {
    // Zero times a power past all bounds would be NaN.
    const delay = base === 0 ? 0 : Math.min(max, base * factor ** (attempt - 1))
    return Math.floor(delay * (1 - jitter * random()))
  }
}
