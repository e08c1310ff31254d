/** Turns the data and options of a push into a job for the store. Everything is checked here, before a store sees it. */

import { types } from 'node:util'
import type { Store } from '../../store.ts'
import { encode } from '../../values/encoding/encoding.ts'
import { type StandardSchema, validate } from '../../values/encoding/schema.ts'
import { MillpondError } from '../../values/errors/errors.ts'
import { newId } from '../../values/jobs/ids.ts'
import type { NewJob } from '../../values/jobs/records.ts'
import { checkOptions, defined } from '../../values/options/options.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import { kindOf, milliseconds } from '../../values/time/duration.ts'
import { type Links, linksFrom, NO_LINKS } from './links.ts'
import { onceFrom } from './once.ts'
import { checkPush, MANY_RULES, type ManyOptions, type PushOptions, type PushTarget, timeOf } from './options.ts'

const NO_OPTIONS: PushOptions = {}

export class Preparer {
  readonly #queue: string
  readonly #pond: { readonly store: Store; readonly maxPayload: number }
  readonly #schema: StandardSchema | undefined
  readonly #target: PushTarget
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
    this.#target = { queue, store: pond.store, limits }
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

  /** @throws InvalidOption, InvalidName, NotSupported */
  #checked(options: PushOptions): PushOptions {
    return checkPush(options, this.#target)
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
