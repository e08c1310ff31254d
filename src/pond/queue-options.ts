/** The options of `pond.queue` and of `queue.override`, and the settings that they are in the store. */

import type { Store } from '../store.ts'
import { NOTHING_GIVEN, settle } from '../stores/given-settings.ts'
import { isStandardSchema, type StandardSchema } from '../values/encoding/schema.ts'
import { MillpondError } from '../values/errors/errors.ts'
import type { SettingsReport } from '../values/operations/requests.ts'
import { checkOptions, defined, isDuration, isInteger, type Rules } from '../values/options/options.ts'
import { type Backoff, backoffPolicy } from '../values/settings/backoff.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import type { GivenSettings, QueueSettings, SettingName, SettingsChange } from '../values/settings/settings.ts'
import { type Duration, milliseconds, shown } from '../values/time/duration.ts'
import { isLimits, limitSettings, needsLimits, type QueueLimitOptions } from './limits.ts'

export interface QueueOptions {
  /**
   * Any Standard Schema. Data is checked on push and again before work; the handler gets the schema's output. Unset:
   * nothing is checked.
   */
  schema?: StandardSchema | undefined
  /**
   * Most blocked, scheduled and waiting jobs; at least 1. null removes the limit. Unset: no limit, in memory 100,000. Kept in
   * the store, for every process.
   */
  capacity?: number | null | undefined
  /**
   * What a push does when the queue is full: reject with `QueueFull`, wait for room, or store the job in the spill store,
   * which only `memory:` has. `'reject'` unless set. Only for pushes of this process.
   */
  whenFull?: 'reject' | 'wait' | 'spill' | undefined
  /**
   * `attempts`: how often a job is tried, the first attempt included; 1 to 1,000,000, 10 unless set. `backoff`: the
   * delay before the next attempt; `'exponential'` unless set. Both are kept in the store, for every process and
   * language. A `backoff` that is a function is not: only workers of this process call it.
   */
  retry?: { attempts?: number | undefined; backoff?: Backoff | undefined } | undefined
  /** A worker that is silent for longer loses the job. 50 ms to 24 days, 30 s unless set. Kept in the store. */
  lease?: Duration | undefined
  /**
   * How long an attempt may run, for jobs pushed without a `timeout`. 1 ms to 24 days; null: no limit, as when unset.
   * Kept in the store.
   */
  timeout?: Duration | null | undefined
  /**
   * How long finished jobs stay in the store: 0 to 100 years, 0: not at all. Kept in the store.
   */
  keep?:
    | {
        /** Done jobs; 1 h unless set. */
        done?: Duration | undefined
        /** Dead and cancelled jobs, which can be requeued so long; 7 d unless set. */
        dead?: Duration | undefined
      }
    | undefined
  /**
   * How many jobs may run at once and start in a time, over all workers; the same for each group, and groups take
   * turns. Kept in the store. What is left out is no limit. Unset: the limits stay as they are. A store without limits
   * (`capabilities.limits`) rejects them with `NotSupported`.
   */
  limits?: QueueLimitOptions | undefined
}

/** What an operator may set: the options of a queue that the store keeps. Of `limits`, only those given are set. */
export type OverrideOptions = Pick<QueueOptions, 'capacity' | 'retry' | 'lease' | 'timeout' | 'keep' | 'limits'>

/** A setting of a queue. Times are in milliseconds. `paused` and `grouped` are none: there the last call wins, and `stats` tells them. */
export interface QueueSetting {
  name: SettingName
  /** What is in effect. */
  value: unknown
  /** Who has set it; `default`: nobody. */
  by: 'operator' | 'code' | 'default'
  /** Where an operator has set it: what code gives, which is not in effect; undefined: nothing. */
  code?: unknown
}

/** All that code and an operator may each set. */
const SETTINGS: Readonly<Record<SettingName, true>> = {
  ...{ capacity: true, keepDone: true, keepDead: true, attempts: true, backoff: true, lease: true, timeout: true },
  ...{ running: true, rate: true, groupRunning: true, groupRate: true },
}

const QUEUE_RULES: Rules<QueueOptions> = {
  schema: isStandardSchema,
  capacity: (value) => value === null || isInteger(1, Number.MAX_SAFE_INTEGER)(value),
  whenFull: (value) => value === 'reject' || value === 'wait' || value === 'spill' || "'reject', 'wait' or 'spill'",
  retry: (value) => checkOptions(value as NonNullable<QueueOptions['retry']>, RETRY_RULES, 'retry') !== undefined,
  lease: isDuration(DEFAULTS.bounds.lease.least),
  timeout: (value) => value === null || isDuration()(value, 'timeout'),
  keep: (value) => checkOptions(value as NonNullable<QueueOptions['keep']>, KEEP_RULES, 'keep') !== undefined,
  limits: isLimits,
}
const RETRY_RULES: Rules<NonNullable<QueueOptions['retry']>> = {
  attempts: isInteger(1, DEFAULTS.bounds.attempts.most),
  backoff: () => true,
}
const KEEP_RULES: Rules<NonNullable<QueueOptions['keep']>> = {
  done: (value) => milliseconds(value, 'keep.done') >= 0,
  dead: (value) => milliseconds(value, 'keep.dead') >= 0,
}
const { schema: _schema, whenFull: _whenFull, ...OVERRIDE_RULES } = QUEUE_RULES

/** @throws InvalidOption */
export function checkQueueOptions(queue: string, options: QueueOptions | undefined): QueueOptions {
  return checkOptions(options, QUEUE_RULES, `queue ${queue}`)
}

/** @throws NotSupported: the store cannot spill */
export function needsSpill(store: Store, queue: string, { whenFull }: QueueOptions): void {
  if (whenFull !== 'spill' || store.capabilities.spill) return
  const message = `queue ${queue}: whenFull: 'spill' needs a pond opened with 'memory:' and the option spill, the URL of a durable store`
  throw new MillpondError('NotSupported', message, { queue })
}

/** The settings that the store keeps. @throws InvalidOption */
export function settingsOf(queue: string, options: QueueOptions): QueueSettings {
  const { capacity, keep, lease, limits, retry, timeout } = options
  const backoff = retry?.backoff
  const ms = (value: Duration | undefined, name: string) =>
    value === undefined ? undefined : milliseconds(value, name)
  return {
    queue,
    ...limitSettings(limits),
    ...defined({
      capacity,
      keepDone: ms(keep?.done, 'keep.done'),
      keepDead: ms(keep?.dead, 'keep.dead'),
      attempts: retry?.attempts,
      backoff: backoff === undefined || typeof backoff === 'function' ? undefined : backoffPolicy(backoff),
      lease: ms(lease, 'lease'),
      timeout: timeout === null ? null : ms(timeout, 'timeout'),
    }),
  }
}

/** @throws InvalidOption, NotSupported */
export function overrideSettings(store: Store, queue: string, options: OverrideOptions): QueueSettings {
  const { limits = {}, ...others } = checkOptions(options, OVERRIDE_RULES, `override of queue ${queue}`)
  needsLimits(store, limits, `limits of queue ${queue}`)
  if (typeof others.retry?.backoff === 'function') {
    throw new MillpondError(
      'InvalidOption',
      'override: a backoff that is a function is not kept in the store; give a policy',
    )
  }
  const { running, rate, groupRunning, groupRate } = limitSettings(limits)
  const given = {
    ...(limits.running !== undefined && { running }),
    ...(limits.rate !== undefined && { rate }),
    ...(limits.group?.running !== undefined && { groupRunning }),
    ...(limits.group?.rate !== undefined && { groupRate }),
  }
  return { ...settingsOf(queue, others), ...defined(given) }
}

export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName)

export const overriddenIn = (given: GivenSettings | null): SettingName[] =>
  Object.keys(given?.operator ?? {}).filter(isSettingName)

function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}

/** @throws InvalidOption */
export function checkSettingNames(names: readonly SettingName[]): readonly SettingName[] {
  const known = Object.keys(SETTINGS).join(', ')
  if (!Array.isArray(names)) throw new MillpondError('InvalidOption', `clearOverrides takes an array of ${known}`)
  for (const name of names) {
    if (!isSettingName(name))
      throw new MillpondError('InvalidOption', `${shown(name)} is no setting; known are ${known}`)
  }
  return names
}

/** Every setting. @param report null: the store does not know the queue, which then has the defaults */
export function shownSettings(store: Store, report: SettingsReport | null): QueueSetting[] {
  const { values = defaultsOf(store), code = {}, operator = {} } = report ?? {}
  return SETTING_NAMES.map((name) => {
    if (Object.hasOwn(operator, name)) {
      return { name, value: values[name], by: 'operator', ...defined({ code: code[name] }) }
    }
    return { name, value: values[name], by: Object.hasOwn(code, name) ? 'code' : 'default' }
  })
}

/** Every setting, as it would be after a change. */
export function settingsAfter(store: Store, report: SettingsReport | null, change: SettingsChange): QueueSetting[] {
  const defaults = defaultsOf(store)
  const { given, apply } = settle(report ?? NOTHING_GIVEN, change, defaults)
  const values = { ...defaults, paused: false, grouped: false, ...report?.values, ...defined(apply) }
  return shownSettings(store, { ...given, values })
}

function defaultsOf({ capabilities }: Store): Required<Pick<QueueSettings, SettingName>> {
  return { ...DEFAULTS.queue, ...(capabilities.bounded && { capacity: DEFAULTS.memory.capacity }) }
}
