/**
 * The pushes of a queue object. The path of a push, by the files of this folder:
 *
 *   options ──► preparer ──► producer ──► pusher, or the waiters for capacity ──► the store ──► the outcome, as a result or an error
 *   checked     a job made      │  settings sent, pushes of parents settled
 *                               └──► direct: all or none (`pushAll`, `callback`), and inside a transaction of the caller
 */

import { isMillpondError, MillpondError } from '../../values/errors/errors.ts'
import type { NewJob, PushOutcome } from '../../values/jobs/records.ts'
import { type PushCall, pushCalls } from '../../values/runtime/published-calls.ts'
import type { QueueSettings } from '../../values/settings/settings.ts'
import { kindOf } from '../../values/time/duration.ts'
import type { PondInternals } from '../internals.ts'
import type { QueueOptions } from '../queue-options.ts'
import { pushInTransaction, pushWhole } from './direct.ts'
import { keyHeld, parentUnknown } from './links.ts'
import type { Pushed, PushManyOptions, PushOptions } from './options.ts'
import type { Preparer } from './preparer.ts'
import { batches } from './pusher.ts'
import type { UnsentSettings } from './unsent-settings.ts'

/** Of queues, which others know by their public side alone. */
const producers = new WeakMap<object, Producer>()
export const registerProducer = (queue: object, producer: Producer): unknown => producers.set(queue, producer)

/** @param queue a `Queue`; undefined: it is something else */
export const producerOf = (queue: unknown): Producer | undefined =>
  typeof queue === 'object' && queue !== null ? producers.get(queue) : undefined

export class Producer {
  readonly queue: string
  readonly #pond: PondInternals
  readonly #preparer: Preparer
  readonly #settings: UnsentSettings
  readonly #waits: boolean
  readonly #answered = (job: NewJob, outcome: PushOutcome | undefined) => this.pushed(job, outcome)

  constructor(
    queue: string,
    pond: PondInternals,
    preparer: Preparer,
    settings: UnsentSettings,
    whenFull: QueueOptions['whenFull'],
  ) {
    this.queue = queue
    this.#pond = pond
    this.#preparer = preparer
    this.#settings = settings
    this.#waits = whenFull === 'wait'
    if (this.#waits) pond.capacityWaiters.listen()
  }

  /** It is of a queue of this pond. */
  isOf(pond: PondInternals): boolean {
    return this.#pond === pond
  }

  /** Settings of the queue that the store does not know yet. */
  get unsent(): QueueSettings | undefined {
    return this.#settings.unsent
  }

  /** Settles when the store knows the settings of the queue. */
  async told(): Promise<void> {
    await this.#settings.send()
  }

  /** @throws as `prepare` */
  prepareMany(items: readonly unknown[], options: PushManyOptions<never> | undefined): NewJob[] | Promise<NewJob[]> {
    return this.#preparer.prepareMany(items, options)
  }

  /** @throws as `push` rejects, before anything is stored */
  prepare(data: unknown, options: PushOptions): NewJob | Promise<NewJob> {
    return this.#preparer.prepare(data, options)
  }

  /** Never throws: errors are in the promise. */
  push(data: unknown, options: PushOptions | undefined): Promise<Pushed> {
    if (!pushCalls.hasSubscribers) return this.#pushOne(data, options)
    return publishedPush(this.queue, 1, options, (given) => this.#pushOne(data, given))
  }

  #pushOne(data: unknown, options: PushOptions | undefined): Promise<Pushed> {
    try {
      this.#pond.assertOpen()
      const job = this.#preparer.prepare(data, options)
      const tx = options?.tx
      const pushed =
        job instanceof Promise
          ? this.#pond.pending(job.then((checked) => this.#push(checked, tx)))
          : this.#push(job, tx)
      if (options?.id !== undefined && tx === undefined) {
        this.#pond.unsettled.add(
          [options.id],
          pushed.then((one) => [one]),
        )
      }
      return pushed
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Never throws: errors are in the promise. */
  pushMany(items: readonly unknown[], options: PushManyOptions<never> | undefined): Promise<Pushed[]> {
    if (!pushCalls.hasSubscribers || !Array.isArray(items)) return this.#pushAll(items, options)
    return publishedPush(this.queue, items.length, options, (given) => this.#pushAll(items, given))
  }

  #pushAll(items: readonly unknown[], options: PushManyOptions<never> | undefined): Promise<Pushed[]> {
    try {
      this.#pond.assertOpen()
      if (!Array.isArray(items)) {
        throw new MillpondError('InvalidOption', `pushMany takes an array; got ${kindOf(items)}`)
      }
      const jobs = this.#preparer.prepareMany(items, options)
      const tx = options?.tx
      if (jobs instanceof Promise) return this.#pond.pending(jobs.then((checked) => this.#pushMany(checked, tx)))
      const pushed = this.#pond.pending(this.#pushMany(jobs, tx))
      if (tx === undefined && jobs.some(({ fresh }) => !fresh)) {
        this.#pond.unsettled.add(
          jobs.map(({ id }) => id),
          pushed,
        )
      }
      return pushed
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #push(job: NewJob, tx: unknown): Promise<Pushed> {
    if (tx !== undefined) return this.#pushInside(tx, [job]).then(([pushed]) => pushed as Pushed)
    const settled = isLinked(job) ? this.#pond.unsettled.settled([job]) : undefined
    if (settled === undefined) return this.#send(job)
    return this.#pond.pending(settled.then(([own = job]) => this.#send(own)))
  }

  #send(job: NewJob): Promise<Pushed> {
    const ready = this.#settings.send()
    return ready === undefined ? this.#add(job) : this.#pond.pending(ready.then(() => this.#add(job)))
  }

  /** Without settings to tell first, the jobs have their place among the pushes before this returns. */
  async #pushMany(jobs: readonly NewJob[], tx: unknown): Promise<Pushed[]> {
    const pushed: Pushed[] = []
    try {
      if (tx === undefined) {
        const ready = this.#settings.send()
        if (ready !== undefined) await ready
        if (!jobs.some(isLinked)) await this.#addMany(jobs, pushed)
        else await this.#addLinked(jobs, pushed)
      } else if (isGraph(jobs)) pushed.push(...(await this.#pushWhole(jobs, tx)))
      else for (const batch of batches(jobs)) pushed.push(...(await this.#pushInside(tx, batch)))
    } catch (error) {
      if (!(error instanceof MillpondError)) throw error
      const { code, message, id } = error
      const told = { cause: error, queue: this.queue, pushed: pushed.length, ...(id !== undefined && { id }) }
      throw new MillpondError(code, message, told)
    }
    return pushed
  }

  #add(job: NewJob): Promise<Pushed> {
    const { capacityWaiters, pusher } = this.#pond
    if (this.#waits) return capacityWaiters.push(job).then((one) => this.pushed(job, one))
    return pusher.push(job, this.#answered)
  }

  /** @param pushed filled with the stored jobs, in order, up to the first one that was not stored */
  async #addMany(jobs: readonly NewJob[], pushed: Pushed[]): Promise<void> {
    const { capacityWaiters, pusher } = this.#pond
    const calls = this.#waits
      ? jobs.map((job) => capacityWaiters.push(job, jobs).then((outcome) => [outcome]))
      : pusher.pushMany(jobs)
    let index = 0
    for (const call of await Promise.allSettled(calls)) {
      if (call.status === 'rejected') throw call.reason
      for (const outcome of call.value) {
        const job = jobs[index++]
        if (job !== undefined) pushed.push(this.pushed(job, outcome))
      }
    }
  }

  /** Jobs that wait for others of the same call are stored all or none: calls of several parts of a store would not keep their order. */
  async #addLinked(jobs: readonly NewJob[], pushed: Pushed[]): Promise<void> {
    if (isGraph(jobs)) pushed.push(...(await this.#pushWhole(jobs, undefined)))
    else {
      const settled = this.#pond.unsettled.settled(jobs)
      await this.#addMany(settled === undefined ? jobs : await settled, pushed)
    }
  }

  #pushWhole(jobs: readonly NewJob[], tx: unknown): Promise<Pushed[]> {
    const members = jobs.map((job) => ({ producer: this, job }))
    return pushWhole(this.#pond, members, tx)
  }

  /** @throws QueueFull, ParentUnknown, KeyHeld, the outcome's error */
  pushed(job: NewJob, outcome: PushOutcome | undefined): Pushed {
    if ((outcome?.status ?? 'full') === 'full') this.#pond.events.emit('full', { queue: this.queue })
    const pushed = this.answered(outcome)
    this.#pond.pushed(job, pushed.id, pushed.existing)
    return pushed
  }

  /** What an outcome means; without an event, as of a transaction. @throws as `pushed` */
  answered(outcome: PushOutcome | undefined): Pushed {
    if (outcome?.error !== undefined) throw outcome.error
    const { id, status, parent } = outcome ?? { id: '', status: 'full' }
    if (status === 'full') {
      const message = `queue ${this.queue} is full; push again later, or open it with whenFull: 'wait'`
      throw new MillpondError('QueueFull', message, { queue: this.queue })
    }
    if (status === 'orphan') throw parentUnknown(this.queue, parent)
    if (status === 'held') throw keyHeld(this.queue, id)
    if (status === 'withheld') throw new MillpondError('StoreFailed', 'the store did not say why it stored no job')
    return status === 'replaced' ? { id, existing: true, replaced: true } : { id, existing: status === 'existing' }
  }

  async #pushInside(tx: unknown, jobs: readonly NewJob[]): Promise<Pushed[]> {
    const outcomes = await pushInTransaction(this.#pond.store, [this], { tx, jobs })
    return outcomes.map((outcome) => this.answered(outcome))
  }
}

const isLinked = ({ after, partOf }: NewJob): boolean => after !== undefined || partOf !== undefined

/** Some wait for others of the list. */
function isGraph(jobs: readonly NewJob[]): boolean {
  if (!jobs.some(isLinked)) return false
  const ids = new Set(jobs.map(({ id }) => id))
  // Most share one list.
  const parents = new Set(jobs.map(({ after = [] }) => after))
  return [...parents].some((after) => after.some((id) => ids.has(id)))
}

/** Publishes the push. @param push with the options to use */
export function publishedPush<Options extends { trace?: string | undefined }, Out extends Pushed | Pushed[]>(
  queue: string,
  count: number,
  options: Options | undefined,
  push: (options: Options | undefined) => Promise<Out>,
): Promise<Out> {
  // What is no object is refused by the push itself.
  if (options !== undefined && (typeof options !== 'object' || options === null)) return push(options)
  const call: PushCall = { queue, count, trace: options?.trace, ended: undefined }
  pushCalls.publish(call)
  const { trace } = call
  // The options were of this type, and `trace` is of all of them.
  const given = trace === options?.trace ? options : ({ ...options, trace } as Options)
  const pushed = push(given)
  const { ended } = call
  if (ended !== undefined) {
    pushed.then(
      (out) =>
        ended(
          null,
          [out].flat().map(({ id }) => id),
        ),
      (error: unknown) => ended(isMillpondError(error) ? error.code : 'Error', []),
    )
  }
  return pushed
}
