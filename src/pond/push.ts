/** Turns the data and options of a push into a job for the store. Everything is checked here, before a store sees it. */

import { types } from 'node:util'
import type { Store } from '../store.ts'
import { encode } from '../values/encoding/encoding.ts'
import { type StandardSchema, validate } from '../values/encoding/schema.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { checkId, newId } from '../values/jobs/ids.ts'
import type { NewJob } from '../values/jobs/records.ts'
import { needs } from '../values/operations/capabilities.ts'
import { checkOptions, defined, isDuration, isFunction, isInteger, type Rules } from '../values/options/options.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { checkKey } from '../values/settings/names.ts'
import { MAX_COST } from '../values/settings/rate.ts'
import type { QueueSettings } from '../values/settings/settings.ts'
import { type Duration, kindOf, LAST_MOMENT, milliseconds } from '../values/time/duration.ts'
import { checkCost } from './limits.ts'
import { checkLinks, LINK_RULES, type LinkOptions, type Links, linkBytes, linksFrom, NO_LINKS } from './links.ts'
import { checkOnce, type OnceOptions, onceFrom } from './once.ts'

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

/** A call to the store carries at most this many jobs and bytes of data. A single larger job goes alone. */
export const MAX_PUSH = { items: DEFAULTS.producer.maxItems, bytes: DEFAULTS.producer.maxBytes }

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
type ManyOptions = PushManyOptions<never> & { callback?: undefined }
const MANY_RULES: Rules<ManyOptions> = {
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

const NO_OPTIONS: PushOptions = {}

export class Preparer {
  readonly #queue: string
  readonly #pond: { readonly store: Store; readonly maxPayload: number }
  readonly #schema: StandardSchema | undefined
  readonly #limits: Omit<QueueSettings, 'queue'>
  readonly #spills: boolean

  /**
   * @param limits of the queue, as far as this process knows them
   * @param spills a job that finds the queue full goes to the spill store
   */
  constructor(
    queue: string,
    pond: { readonly store: Store; readonly maxPayload: number },
    schema: StandardSchema | undefined,
    limits: Omit<QueueSettings, 'queue'>,
    spills: boolean,
  ) {
    this.#queue = queue
    this.#pond = pond
    this.#schema = schema
    this.#limits = limits
    this.#spills = spills
  }

  /** A promise only when the schema is asynchronous. @throws SchemaMismatch, Payload…, InvalidOption, InvalidName */
  prepare(data: unknown, options: PushOptions | undefined): NewJob | Promise<NewJob> {
    return this.#prepare(data, options === undefined ? NO_OPTIONS : this.#checked(options))
  }

  /**
   * Reads items, data and options before it returns: the caller may change them then. A promise only when the schema is
   * asynchronous.
   * @throws as `prepare`
   */
  prepareMany(items: readonly unknown[], options: ManyOptions | undefined): NewJob[] | Promise<NewJob[]> {
    const { each, callback: _, ...common } = checkOptions(options, MANY_RULES, `pushMany to ${this.#queue}`)
    const alike = each === undefined ? this.#checked(common) : NO_OPTIONS
    const links = linksFrom(alike)
    const jobs: (NewJob | Promise<NewJob>)[] = []
    for (const [index, item] of items.entries()) {
      if (each === undefined) jobs.push(this.#prepare(item, alike, links))
      else {
        const given = this.#checked({ ...common, ...defined(this.#own(each(item as never, index))) })
        jobs.push(this.#prepare(item, given))
      }
    }
    const ready = jobs.filter((job): job is NewJob => !(job instanceof Promise))
    return ready.length === jobs.length ? ready : allInOrder(jobs)
  }

  /** @throws InvalidOption, InvalidName */
  #checked(options: PushOptions): PushOptions {
    const given = checkOptions(options, EACH_RULES, `push to ${this.#queue}`)
    if (given.delay !== undefined && given.runAt !== undefined) {
      throw new MillpondError('InvalidOption', `push to ${this.#queue}: give delay or runAt, not both`)
    }
    checkOnce(given, this.#pond.store, `push to ${this.#queue}`)
    checkLinks(given, this.#pond.store, `push to ${this.#queue}`)
    if (given.cost !== undefined) {
      needs(this.#pond.store, 'rates', 'cost')
      checkCost(given.cost, this.#limits)
    }
    return given
  }

  /** @param links those of the options, which the jobs of a call share */
  #prepare(data: unknown, given: PushOptions, links = linksFrom(given)): NewJob | Promise<NewJob> {
    if (this.#schema !== undefined) {
      // Store the data as they were given, not the schema's output: the worker validates again, and must not transform twice.
      const valid = validate(this.#schema, data, this.#queue)
      if (valid instanceof Promise) return this.#jobOnce(valid, data, given, links)
    }
    return this.#job(data, given, links)
  }

  /** The job as the data are now, once they are found valid. */
  #jobOnce(valid: Promise<unknown>, data: unknown, given: PushOptions, links: Links): Promise<NewJob> {
    // Nobody waits for a rejection that comes later: the push has failed already.
    valid.catch(() => {})
    const job = this.#job(data, given, links)
    return valid.then(() => job)
  }

  /** The options that `each` returned. @throws InvalidOption for anything that would be ignored otherwise */
  #own(given: PushOptions | undefined): PushOptions {
    if (given === undefined) return NO_OPTIONS
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given)
    if (isObject && !types.isPromise(given) && !('tx' in given)) return given
    const message = `each must return an object of options at once, without tx; got ${kindOf(given)}`
    throw new MillpondError('InvalidOption', `pushMany to ${this.#queue}: ${message}`)
  }

  #job(data: unknown, options: PushOptions, links: Links): NewJob {
    const job: NewJob = {
      id: options.id === undefined ? newId() : options.id.toLowerCase(),
      queue: this.#queue,
      priority: options.priority ?? DEFAULTS.job.priority,
      delay: options.delay === undefined ? 0 : milliseconds(options.delay, 'delay'),
      runAt: options.runAt === undefined ? null : (timeOf(options.runAt) ?? null),
      key: options.key ?? null,
      group: options.group ?? null,
      attempts: options.attempts ?? null,
      timeout: options.timeout === undefined ? null : milliseconds(options.timeout, 'timeout', 1),
      trace: options.trace ?? null,
      data: encode(data, 'data', this.#pond.maxPayload),
      fresh: options.id === undefined,
    }
    // Few jobs have these; to spread what most lack costs a plain push more than all members above.
    if (options.cost !== undefined) job.cost = options.cost
    if (options.once !== undefined) Object.assign(job, onceFrom(options.once))
    if (this.#spills) job.spill = true
    if (links !== NO_LINKS) Object.assign(job, links)
    return job
  }
}

/** Rejects as the first one in order that does, once all are settled. */
async function allInOrder(jobs: readonly (NewJob | Promise<NewJob>)[]): Promise<NewJob[]> {
  const settled = await Promise.allSettled(jobs)
  return settled.map((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
}

/** Roughly the bytes of a job's data and parents: a text is counted in UTF-16 units. */
export function bytesOf(job: NewJob): number {
  return job.data.body.length + linkBytes(job)
}

/** Cuts jobs into batches of a size that one call carries. */
export function* batches(jobs: readonly NewJob[]): Generator<NewJob[]> {
  let from = 0
  let bytes = 0
  for (const [at, job] of jobs.entries()) {
    const more = bytesOf(job)
    if (at > from && (at - from === MAX_PUSH.items || bytes + more > MAX_PUSH.bytes)) {
      yield jobs.slice(from, at)
      from = at
      bytes = 0
    }
    bytes += more
  }
  if (from < jobs.length) yield jobs.slice(from)
}

/** A moment, in milliseconds since 1970; undefined: the value is none. */
export function timeOf(value: unknown): number | undefined {
  const ms = types.isDate(value) ? value.getTime() : value
  return typeof ms === 'number' && ms >= 0 && ms <= LAST_MOMENT ? Math.round(ms) : undefined
}
