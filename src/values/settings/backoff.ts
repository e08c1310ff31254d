/**
 * How long a failed job waits before its next attempt. Pinned by `contract/vectors/backoff.json`.
 *
 *   exponential: base × factor^(attempt − 1), at most `max`     fixed: base
 *   then × (1 − jitter × r), r random in [0, 1)
 *
 * With jitter 1 this is the "full jitter", with 0.5 the "equal jitter" of M. Brooker, "Exponential Backoff And Jitter",
 * AWS Architecture Blog, 2015: without any, jobs that failed together come back together.
 */

import { MillpondError } from '../errors/errors.ts'
import { checkOptions, type Rules } from '../options/options.ts'
import { type Duration, milliseconds, shown } from '../time/duration.ts'
import { DEFAULTS } from './contract-defaults.ts'

/**
 * delay = min(max, base × factor^(attempt − 1)) × (1 − jitter × random), in whole milliseconds;
 * `contract/vectors/backoff.json` has cases.
 */
export interface BackoffPolicy {
  /** Delay after the first attempt, in milliseconds. */
  base: number
  /** 1 to 100; 1: the same delay each time. */
  factor: number
  /** Longest delay before jitter, in milliseconds. */
  max: number
  /** The share of the delay that is random, 0 to 1. */
  jitter: number
}

export interface BackoffOptions {
  type: 'exponential' | 'fixed'
  /** Delay after the first attempt; 1 s unless set. */
  base?: Duration | undefined
  /** 2 unless set; at least 1. */
  factor?: number | undefined
  /** Longest delay before jitter; 1 h unless set. */
  max?: Duration | undefined
  /** How much of the delay is left to chance, 0 to 1; 0.5 unless set. */
  jitter?: number | undefined
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

/** The policy of a queue that sets none. */
export const DEFAULT_BACKOFF: BackoffPolicy = DEFAULTS.queue.backoff

/** As the store keeps it with the queue. @throws InvalidOption */
export function backoffPolicy(option: Exclude<Backoff, BackoffFunction>): BackoffPolicy {
  if (typeof option !== 'string' && (typeof option !== 'object' || option === null)) {
    const message = `retry.backoff must be 'exponential', 'fixed', an object or a function; got ${shown(option)}`
    throw new MillpondError('InvalidOption', message)
  }
  const given = checkOptions(typeof option === 'string' ? { type: option } : option, RULES, 'retry.backoff', ['type'])
  return {
    base: given.base === undefined ? DEFAULT_BACKOFF.base : milliseconds(given.base, 'backoff.base'),
    factor: given.type === 'fixed' ? 1 : (given.factor ?? DEFAULT_BACKOFF.factor),
    max: given.max === undefined ? DEFAULT_BACKOFF.max : milliseconds(given.max, 'backoff.max'),
    jitter: given.jitter ?? DEFAULT_BACKOFF.jitter,
  }
}

/** @param attempt that failed, from 1 @param random from 0 to below 1 @returns whole milliseconds */
export function delayAfter({ base, factor, max, jitter }: BackoffPolicy, attempt: number, random: number): number {
  // Zero times a power past all bounds would be NaN.
  const delay = base === 0 ? 0 : Math.min(max, base * factor ** (attempt - 1))
  return Math.floor(delay * (1 - jitter * random))
}

/** For a queue whose process computes its delays itself. @throws InvalidOption */
export function computedDelay(backoff: BackoffFunction): (attempt: number, error: unknown) => number {
  return (attempt, error) => milliseconds(backoff(attempt, error), 'what the backoff function returned')
}
