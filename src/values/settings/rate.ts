/**
 * Rates of starts, by the generic cell rate algorithm (GCRA; ITU-T I.371, Annex A). All that is kept of a rate is one
 * time, `full`, in microseconds: when all that was started is paid for. `contract/vectors/rate.json` pins the
 * arithmetic.
 *
 *   step = ⌈per × 1000 ÷ count⌉        what one start costs, in microseconds
 *   a start of cost c is allowed from   full − (max(burst, c) − c) × step
 *   and sets                            full = max(full, now) + c × step
 *   no start leaves it beyond           now + max(burst, c) × step
 */

import { MillpondError } from '../errors/errors.ts'
import { checkOptions, isInteger } from '../options/options.ts'
import { type Duration, milliseconds, shown } from '../time/duration.ts'
import { DEFAULTS } from './contract-defaults.ts'
import type { Rate } from './limits.ts'

/** `'100/s'`, `'5/10s'` or `'2000/h'`: so many starts in that time; or the same in full. */
export type RateOption = `${number}/${string}` | RateOptions

export interface RateOptions {
  /** Starts; whole number, 1 to 1,000,000. */
  count: number
  /** In this time; 1 ms to 1 day, and long enough that a start takes a microsecond. */
  per: Duration
  /**
   * Starts that may come at once after a pause; whole number, 1 to 1,000,000. The starts of 100 ms unless set or where
   * null, at least 1.
   */
  burst?: number | null | undefined
}

/** Of one job. */
export const MAX_COST = DEFAULTS.bounds.cost.most
export const MAX_STARTS = DEFAULTS.bounds.rateCount.most
const DAY = DEFAULTS.bounds.ratePer.most
/** Microseconds that a whole burst may take: sums of times stay exact. */
const MAX_BURST_TIME = DEFAULTS.bounds.rateBurstTime.most

const RULES = {
  count: isInteger(1, MAX_STARTS),
  per: (value: unknown) => milliseconds(value, 'per', 1, DAY) > 0,
  burst: (value: unknown) => value === null || isInteger(1, MAX_STARTS)(value),
}

/** As the store keeps it. @param name what the rate is for, as the error names it @throws InvalidOption */
export function rateOf(option: RateOption, name: string): Rate {
  const match = typeof option === 'string' ? /^(\d+)\/(\d+(?:\.\d+)?)?(ms|s|m|h|d)$/.exec(option) : null
  const given = match === null ? option : { count: Number(match[1]), per: `${match[2] ?? 1}${match[3]}` }
  if (typeof given !== 'object' || given === null) {
    throw new MillpondError('InvalidOption', `${name} must be a rate such as '100/s' or '5/10s'; got ${shown(option)}`)
  }
  const { count, per, burst = null } = checkOptions(given as RateOptions, RULES, name, ['count', 'per'])
  const rate = { count, per: milliseconds(per, 'per', 1, DAY), burst }
  if (rate.count > rate.per * 1000 || burstOf(rate) * stepOf(rate) > MAX_BURST_TIME) {
    const message = `${name}: ${count} starts in ${rate.per} ms${burst === null ? '' : ` with a burst of ${burst}`} is out of range`
    throw new MillpondError('InvalidOption', message)
  }
  return rate
}

/** Microseconds. */
const stepOf = ({ count, per }: Rate): number => Math.ceil((per * 1000) / count)

/** The burst: how many starts may come at once after an idle time. */
export const burstOf = ({ count, per, burst }: Rate): number =>
  burst ?? Math.max(1, Math.floor((count * DEFAULTS.rate.burstTime) / per))

/**
 * What `full` counts as: after a change of the rate or a step back of the clock, it may lie further ahead than any
 * start by this rate leaves it.
 */
export const boundedFull = (rate: Rate, full: number, fullCost: number, now: number): number =>
  Math.min(full, now + Math.max(burstOf(rate), fullCost) * stepOf(rate))

/** From when on a start is allowed, in microseconds. */
export const startableAt = (rate: Rate, full: number, cost: number): number =>
  full - (Math.max(burstOf(rate), cost) - cost) * stepOf(rate)

/** `full` after a start. All times are in microseconds. */
export const fullAfter = (rate: Rate, full: number, now: number, cost: number): number =>
  Math.max(full, now) + cost * stepOf(rate)

/**
 * `full` after a start was given back. Only the part of its cost that has not expired is given back; more would allow
 * starts above the rate.
 */
export const fullWithout = (rate: Rate, full: number, now: number, startedAt: number, cost: number): number =>
  full - Math.min(cost * stepOf(rate), Math.max(0, startedAt + cost * stepOf(rate) - now))
