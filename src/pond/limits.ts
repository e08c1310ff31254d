/** The limits of a queue and of its groups, as callers give and see them. */

import type { Store } from '../store.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkOptions, isInteger, type Rules } from '../values/options/options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { type GroupLimits, type LimitSettings, MAX_RUNNING, type Rate } from '../values/settings/limits.ts'
import { checkKey } from '../values/settings/names.ts'
import { burstOf, type RateOption, rateOf } from '../values/settings/rate.ts'
import type { QueueSettings } from '../values/settings/settings.ts'

/** Limits over all workers, in every process and language. Those that are left out, or null, are no limit. */
export interface LimitOptions {
  /** Most jobs that run at once; whole number from 1 to 2^31 − 1. */
  running?: number | null | undefined
  /** Most starts in a time: `'100/s'`, `'5/10s'`, or `{ count, per, burst }`. */
  rate?: RateOption | null | undefined
}

export interface QueueLimitOptions extends LimitOptions {
  /**
   * Limits of each group. Groups then also take turns, one job each; `{}` for nothing but that. A queue whose groups
   * took turns once goes on so, even without this or with null. The jobs without a group take turns as a group of their
   * own, without limits.
   */
  group?: LimitOptions | null | undefined
}

export interface GroupLimitOptions extends LimitOptions {
  /**
   * The group's share where groups take turns, beside those of other groups; above 0, at most 1000, 1 unless set. A
   * group of weight 4 gets four turns for one.
   */
  weight?: number | undefined
}

/** The limits that a queue has, in the shape of the option `limits`. */
export interface QueueLimits {
  running: number | null
  rate: Rate | null
  /** Those of each group; null: groups do not take turns. */
  group: { running: number | null; rate: Rate | null } | null
}

const LIMIT_RULES: Rules<LimitOptions> = {
  running: (value) => value === null || isInteger(1, MAX_RUNNING)(value),
  rate: (value) => value === null || rateOf(value as RateOption, 'rate').count > 0,
}
const QUEUE_RULES: Rules<QueueLimitOptions> = {
  ...LIMIT_RULES,
  group: (value) => checkOptions(value as LimitOptions, LIMIT_RULES, 'limits.group') !== undefined,
}
const GROUP_RULES: Rules<GroupLimitOptions> = {
  ...LIMIT_RULES,
  weight: (value) => (typeof value === 'number' && value > 0 && value <= 1000) || 'a number above 0, at most 1000',
}

export const isLimits = (value: unknown): boolean | string =>
  checkOptions(value as QueueLimitOptions, QUEUE_RULES, 'limits') !== undefined

const rate = (option: RateOption | null | undefined, name: string) => (option ? rateOf(option, name) : null)

/** As the store keeps them. @throws InvalidOption */
export function limitSettings(limits: QueueLimitOptions | undefined): Omit<QueueSettings, 'queue'> {
  if (limits === undefined) return {}
  const { group } = limits
  return {
    running: limits.running ?? null,
    rate: rate(limits.rate, 'limits.rate'),
    groupRunning: group?.running ?? null,
    groupRate: rate(group?.rate, 'limits.group.rate'),
    ...(group ? { grouped: true as const } : {}),
  }
}

/** As `stats` tells them. */
export function limitsOf({ running, rate, grouped, groupRunning, groupRate }: LimitSettings): QueueLimits {
  return { running, rate, group: grouped ? { running: groupRunning, rate: groupRate } : null }
}

/** @throws InvalidOption, InvalidName, NotSupported */
export async function limitGroup(
  store: Store,
  queue: string,
  group: string,
  options: GroupLimitOptions | null,
): Promise<void> {
  if (options === undefined) {
    const message = `limitGroup of queue ${queue} takes the group's limits, or null to take away its own; got undefined`
    throw new MillpondError('InvalidOption', message)
  }
  const own = options === null ? null : checkOptions(options, GROUP_RULES, `limitGroup of queue ${queue}`)
  const limits: GroupLimits | null =
    own === null
      ? null
      : { running: own.running ?? null, rate: rate(own.rate, 'rate'), weight: own.weight ?? DEFAULTS.group.weight }
  // The jobs without a group are the group ''.
  const name = group === '' ? '' : checkKey(group, 'group')
  needs(store, 'groups', 'limitGroup')
  await store.operations.limitGroup({ queue, group: name, limits })
}

/** What the limits need of the store. @param what as callers know them @throws NotSupported */
export function needsLimits(store: Store, { running, rate, group }: QueueLimitOptions, what: string): void {
  if (running) needs(store, 'limits', what)
  if (rate) needs(store, 'rates', what)
  if (group) needs(store, 'groups', what)
}

/** A push that would never find its rate unused enough. @throws InvalidOption */
export function checkCost(cost: number, { rate: own, groupRate }: Omit<QueueSettings, 'queue'>): void {
  for (const [name, each] of [
    ['limits.rate', own],
    ['limits.group.rate', groupRate],
  ] as const) {
    if (each && cost > burstOf(each)) {
      const message = `cost ${cost} is more than the burst of ${name}, ${burstOf(each)}; give the rate a larger burst`
      throw new MillpondError('InvalidOption', message)
    }
  }
}
