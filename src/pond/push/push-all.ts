/**
 * Pushes of several jobs that wait for each other, all of them or none:
 *
 *   read and checked ──► sorted, parents first ──► one call of the store ──► the outcomes, in the order of the list
 *                          └─ GraphCycle             └─ with `tx`: inside the caller's transaction
 */

import { MillpondError } from '../../values/errors/errors.ts'
import { isId } from '../../values/jobs/ids.ts'
import type { NewJob } from '../../values/jobs/records.ts'
import { checkOptions } from '../../values/options/options.ts'
import { kindOf } from '../../values/time/duration.ts'
import type { PondInternals } from '../internals.ts'
import { checkCount, pushWhole } from './direct.ts'
import { inOrder } from './job-order.ts'
import { MAX_PARENTS } from './links.ts'
import type { Pushed, PushOptions } from './options.ts'
import { type Producer, producerOf } from './producer.ts'

/** As of a push. */
export interface GraphJobOptions extends Omit<PushOptions, 'after' | 'tx'> {
  /** The jobs that this one waits for: places in the list, from 0, or ids of jobs that the store has. 10,000 at most. */
  after?: readonly (number | string)[] | undefined
}

/** A queue of the pond, as far as its type goes. */
export interface QueueOf<Data> {
  readonly name: string
  push(data: Data, options?: PushOptions): Promise<Pushed>
}

/** The queue, the data, and options. */
export type GraphJob<Data = unknown> = readonly [queue: QueueOf<Data>, data: NoInfer<Data>, options?: GraphJobOptions]

export interface PushAllOptions {
  /** As of a push: the jobs are stored inside this transaction. */
  tx?: unknown
}

/** A job whose parents in the list are known by their places. */
interface Placed {
  producer: Producer
  job: NewJob | Promise<NewJob>
  places: readonly number[]
}

/** Never throws: errors are in the promise. */
export function pushAll(pond: PondInternals, given: unknown, options: PushAllOptions | undefined): Promise<Pushed[]> {
  try {
    pond.assertOpen()
    const { tx } = checkOptions(options, { tx: (value) => value !== null || 'a transaction' }, 'pushAll')
    if (!Array.isArray(given)) throw invalid(`pushAll takes an array of jobs; got ${kindOf(given)}`)
    checkCount(given.length)
    // All is read here: the caller may change it then.
    const placed = given.map((entry: unknown, at) => placedJob(pond, entry, at, given.length))
    const pushed = pond.pending(checkedAndPushed(pond, placed, tx))
    if (tx === undefined) pond.unsettled.add(idsOf(given), pushed)
    return pushed
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Those that the caller has given. */
const idsOf = (given: readonly GraphJob[]): (string | undefined)[] => given.map(([, , options]) => options?.id)

/** What each is, all checked. @throws as `pushAll` */
async function checkedAndPushed(pond: PondInternals, placed: readonly Placed[], tx: unknown): Promise<Pushed[]> {
  const settled = await Promise.allSettled(placed.map(({ job }) => job))
  const prepared = settled.map((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
  const places = new Map(prepared.map(({ id }, at) => [id, at]))
  const parents = placed.map((each, at) => {
    const named = (prepared[at]?.after ?? []).flatMap((id) => places.get(id) ?? [])
    return [...new Set([...each.places, ...named])]
  })
  // A job is stored behind the one that it is part of.
  const order = inOrder(
    parents.map((own, at) => {
      const partOf = places.get(prepared[at]?.partOf ?? '')
      return partOf === undefined ? own : [...own, partOf]
    }),
  )
  const ids = prepared.map(({ id }) => id)
  const members = order.map((at) => {
    const { producer } = placed[at] as Placed
    return { producer, job: linked(prepared[at] as NewJob, parents[at] ?? [], ids) }
  })
  const pushed = await pushWhole(pond, members, tx)
  const answers: Pushed[] = []
  for (const [at, place] of order.entries()) answers[place] = pushed[at] as Pushed
  return answers
}

/** @throws InvalidOption, and as `Producer.prepare` */
function placedJob(pond: PondInternals, entry: unknown, at: number, count: number): Placed {
  const where = `pushAll: job ${at}`
  if (!Array.isArray(entry) || entry.length < 2 || entry.length > 3) {
    throw invalid(`${where} must be an array of a queue, data and options, as in [queue, data, { after: [0] }]`)
  }
  const [queue, data, options = {}] = entry
  const producer = producerIn(pond, queue, where)
  const { after = [], ...others } = checkedObject(options, where)
  if ('tx' in others) throw invalid(`${where}: tx is an option of pushAll, for all of its jobs`)
  if (!Array.isArray(after)) throw invalid(`${where}: after must be an array; got ${kindOf(after)}`)
  const places = after.filter((each: unknown) => typeof each === 'number')
  for (const place of places) {
    const isPlace = Number.isInteger(place) && place >= 0 && place < count
    if (!isPlace) throw invalid(`${where}: after names the place ${place}; places are 0 to ${count - 1}`)
  }
  if (after.length > MAX_PARENTS)
    throw invalid(`${where}: after takes at most ${MAX_PARENTS} jobs; got ${after.length}`)
  const ids = after.filter((each: unknown) => typeof each !== 'number')
  // onDead alone would be refused: its parents are places here.
  const { onDead, ...rest } = others as PushOptions
  const isChild = after.length > 0
  if (onDead !== undefined && !isChild) producer.prepare(data, { ...rest, onDead })
  const job = producer.prepare(data, { ...rest, ...(isChild && { after: ids, onDead }) })
  if (job instanceof Promise) job.catch(() => {})
  return { producer, job, places }
}

function checkedObject(options: unknown, where: string): { after?: unknown } {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) return options
  throw invalid(`${where}: options must be an object; got ${kindOf(options)}`)
}

/** @throws InvalidOption: the queue is no queue of this pond */
export function producerIn(pond: PondInternals, queue: unknown, where: string): Producer {
  const producer = producerOf(queue)
  if (producer?.isOf(pond) === true) return producer
  const got = producer === undefined ? kindOf(queue) : 'a queue of another one'
  throw invalid(`${where}: the queue must be one of this pond, as pond.queue(name) returns it; got ${got}`)
}

const linked = (job: NewJob, parents: readonly number[], ids: readonly string[]): NewJob =>
  parents.length === 0
    ? job
    : { ...job, after: [...new Set([...(job.after ?? []), ...parents.map((at) => ids[at] ?? '')])].filter(isId) }

const invalid = (message: string) => new MillpondError('InvalidOption', message)
