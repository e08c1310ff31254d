/** The options of a push, and what it resolves to. */

import { types } from 'node:util'
import type { Store } from '../../store.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { checkId } from '../../values/jobs/ids.ts'
import { needs } from '../../values/operations/capabilities.ts'
import { checkOptions, isDuration, isFunction, isInteger, type Rules } from '../../values/options/options.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { checkKey } from '../../values/settings/names.ts'
import { MAX_COST } from '../../values/settings/rate.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import { type Duration, LAST_MOMENT, milliseconds } from '../../values/time/duration.ts'
import { checkCost } from '../limits.ts'
import { checkLinks, LINK_RULES, type LinkOptions } from './links.ts'
import { checkOnce, type OnceOptions } from './once.ts'

export interface PushOptions extends LinkOptions {
  /**
   * A UUID of your own, preferably a UUIDv7; made by Millpond unless set. A push with a known id stores nothing and
   * resolves to that job, so a push whose answer was lost can be repeated. A job that is kept no longer is not known:
   * with `keep.done: 0`, its repeat runs it again.
   */
  id?: string | undefined
  /** Whole number, 0 to 9, higher first; 4 unless set, as in JMS. */
  priority?: number | undefined
  /** The job is due after this time, by the store's clock; 0 to 100 years, 0 unless set. Not together with `runAt`. */
  delay?: Duration | undefined
  /**
   * The job is due at this time: a Date, or milliseconds since 1970, not negative. A time in the past means now. Not
   * together with `delay`.
   */
  runAt?: Date | number | undefined
  /**
   * At most one live job of the queue has this key; a second push resolves to the first job's id. 1 to 255 bytes of UTF-8 without NUL.
   */
  key?: string | undefined
  /** What the key does beyond that: it is remembered, a later push replaces the job or follows it. Needs `key`. See docs/once.md. */
  once?: OnceOptions | undefined
  /**
   * What it belongs to, such as a tenant: groups may have limits and take turns; see `limits` of the queue. 1 to 255
   * bytes of UTF-8 without NUL.
   */
  group?: string | undefined
  /** What its start takes of a rate, and how much it counts where groups take turns; whole number from 1 to 10,000, 1 unless set. */
  cost?: number | undefined
  /** How often the job is tried, the first attempt included; 1 to 1,000,000, the queue's `retry.attempts` unless set. */
  attempts?: number | undefined
  /** How long one attempt may run; 1 ms to 24 days, the queue's `timeout` unless set. */
  timeout?: Duration | undefined
  /** W3C trace context (`traceparent`), kept with the job; 1 to 512 printable ASCII characters. */
  trace?: string | undefined
  /**
   * Store the job inside this open transaction of the store's own database; the job exists when that commits. On a store without
   * transactions the push rejects with `NotSupported`, with any other value with `TransactionMismatch`. A full queue always rejects with
   * `QueueFull` here, even with `whenFull: 'wait'`.
   */
  tx?: unknown
}

export interface PushManyOptions<Data> extends Omit<PushOptions, 'id' | 'key'> {
  /** Called for each job; returns options that override the common ones, at once and without `tx`. */
  each?: ((data: Data, index: number) => Omit<PushOptions, 'tx'>) | undefined
}

const EACH_RULES: Rules<PushOptions> = {
  id: (value) => checkId(value) !== '',
  priority: isInteger(0, 9),
  delay: (value) => milliseconds(value, 'delay') >= 0,
  runAt: (value) => timeOf(value) !== undefined || 'a valid Date, or milliseconds since 1970',
  key: (value) => checkKey(value, 'key') !== '',
  group: (value) => checkKey(value, 'group') !== '',
  cost: isInteger(1, MAX_COST),
  attempts: isInteger(1, DEFAULTS.bounds.attempts.most),
  timeout: isDuration(),
  trace: (value) => (typeof value === 'string' && /^[\x20-\x7e]{1,512}$/.test(value)) || 'printable ASCII, 512 at most',
  tx: (value) => value !== null || 'a transaction',
  once: () => true, // checked below
  ...LINK_RULES,
}
// With one id or key for all, only the first job would be stored.
const { id: _id, key: _key, ...COMMON_RULES } = EACH_RULES
/** With a callback that is undefined, if it is named at all: others are taken out before. */
export type ManyOptions = PushManyOptions<never> & { callback?: undefined }
export const MANY_RULES: Rules<ManyOptions> = {
  ...COMMON_RULES,
  each: isFunction,
  callback: (value) => value === undefined,
}

/** What a push resolves to, once the store has the job. */
export interface Pushed {
  /** The id of the job, in lower case. */
  id: string
  /** true: a job had the key, live or remembered, or the id was known. No job was added, and `id` is that job's. */
  existing: boolean
  /** true: that job has the data and the due time of this push. Unset otherwise. */
  replaced?: true
}

/** Where a push goes. */
export interface PushTarget {
  queue: string
  store: Store
  /** Of the queue, as far as this process knows them. */
  limits: Omit<QueueSettings, 'queue'>
}

/**
 * The options of one push, checked with all that they say together.
 * @throws InvalidOption, InvalidName, NotSupported
 */
export function checkPush(options: PushOptions, { queue, store, limits }: PushTarget): PushOptions {
  const given = checkOptions(options, EACH_RULES, `push to ${queue}`)
  if (given.delay !== undefined && given.runAt !== undefined) {
    throw new MillpondError('InvalidOption', `push to ${queue}: give delay or runAt, not both`)
  }
  checkOnce(given, store, `push to ${queue}`)
  checkLinks(given, store, `push to ${queue}`)
  if (given.cost !== undefined) {
    needs(store, 'rates', 'cost')
    checkCost(given.cost, limits)
  }
  return given
}

/** A moment, in milliseconds since 1970; undefined: the value is none. */
export function timeOf(value: unknown): number | undefined {
  const ms = types.isDate(value) ? value.getTime() : value
  return typeof ms === 'number' && ms >= 0 && ms <= LAST_MOMENT ? Math.round(ms) : undefined
}
