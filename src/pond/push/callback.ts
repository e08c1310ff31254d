/** `pushMany` with a callback: one job that starts when all jobs of the list have ended. */

import { MillpondError } from '../../values/errors/errors.ts'
import { pushCalls } from '../../values/runtime/published-calls.ts'
import { kindOf } from '../../values/time/duration.ts'
import type { PondInternals } from '../internals.ts'
import { checkCount, pushWhole } from './direct.ts'
import { MAX_PARENTS } from './links.ts'
import type { Pushed, PushManyOptions, PushOptions } from './options.ts'
import type { Producer } from './producer.ts'
import { publishedPush } from './producer.ts'
import { producerIn, type QueueOf } from './push-all.ts'

/** The queue, the data, and options of the callback. `onDead` is `run` unless set: it starts however the others have ended. */
export type Callback<Data = unknown> = readonly [
  queue: QueueOf<Data>,
  data: NoInfer<Data>,
  options?: Omit<PushOptions, 'tx'>,
]

/** What `pushMany` with a callback resolves to. */
export interface PushedWithCallback {
  /** In the order of the list. */
  jobs: Pushed[]
  callback: Pushed
}

type Options = PushManyOptions<never> & { callback: Callback }

/** Never throws: errors are in the promise. */
export async function pushWithCallback(
  pond: PondInternals,
  producer: Producer,
  items: readonly unknown[],
  options: Options,
): Promise<PushedWithCallback> {
  const push = (given: Options = options) => pushBoth(pond, producer, items, given)
  const isHeard = pushCalls.hasSubscribers && Array.isArray(items)
  const all = await (isHeard ? publishedPush(producer.queue, items.length + 1, options, push) : push())
  return { jobs: all.slice(0, -1), callback: all.at(-1) as Pushed }
}

async function pushBoth(
  pond: PondInternals,
  producer: Producer,
  items: readonly unknown[],
  { callback, ...common }: Options,
): Promise<Pushed[]> {
  pond.assertOpen()
  const where = `pushMany to ${producer.queue}`
  if (!Array.isArray(items)) throw new MillpondError('InvalidOption', `pushMany takes an array; got ${kindOf(items)}`)
  const isEntry = Array.isArray(callback) && (callback.length === 2 || callback.length === 3)
  if (!isEntry) {
    const form = 'an array of a queue, data and options, as in callback: [queue, data]'
    throw new MillpondError('InvalidOption', `${where}: callback must be ${form}; got ${kindOf(callback)}`)
  }
  checkCount(items.length + 1)
  const [queue, data, own = {}] = callback as readonly [unknown, unknown, Omit<PushOptions, 'tx'>?]
  const last = producerIn(pond, queue, `the callback of ${where}`)
  const { tx } = common
  const jobs = producer.prepareMany(items, common)
  // It is awaited below, unless the callback is refused first.
  if (jobs instanceof Promise) jobs.catch(() => {})
  // The ids of the jobs come once they are made; a push without parents would refuse onDead.
  const { after = [], onDead = 'run', ...rest } = own
  const options = { ...rest, after, onDead, ...(common.trace !== undefined && { trace: rest.trace ?? common.trace }) }
  const prepared = last.prepare(data, options)
  const push = async () => {
    const settled = await Promise.allSettled([jobs, prepared])
    for (const each of settled) if (each.status === 'rejected') throw each.reason
    const [list, job] = [await jobs, await prepared]
    const parents = [...new Set([...(job.after ?? []), ...list.map(({ id }) => id)])]
    if (parents.length > MAX_PARENTS) {
      const message = `${where}: a callback waits for at most ${MAX_PARENTS} jobs; got ${parents.length}`
      const advice = 'push several lists, and a job after their callbacks'
      throw new MillpondError('InvalidOption', `${message}. For more, ${advice}`)
    }
    const members = list.map((each) => ({ producer, job: each }))
    return pushWhole(pond, [...members, { producer: last, job: { ...job, after: parents } }], tx)
  }
  return pond.pending(push())
}
