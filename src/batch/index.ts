/** Many calls, each with one item, made as few calls with many: group commit for any backend. The grouping is `batch/batcher.ts`. */

import { MillpondError } from '../values/errors/errors.ts'
import {
  checkFunction,
  checkOptions,
  isDuration,
  isFunction,
  isInteger,
  type Rules,
  signalOf,
} from '../values/options/options.ts'
import { inThisContext } from '../values/runtime/async-context.ts'
import { isError } from '../values/runtime/realms.ts'
import { type Duration, kindOf, milliseconds } from '../values/time/duration.ts'
import { Batcher } from './batcher.ts'
import { NestedCalls } from './nested-calls.ts'

export interface BatchOptions<In> {
  /** Most items in a group. 500 unless given. */
  max?: number | undefined
  /** How long a call may wait for others to fill its group. 0 unless given: not at all. */
  within?: Duration | undefined
  /** How many groups may be under way at once. 1 unless given: whatever comes during one forms the next. */
  concurrency?: number | undefined
  /** Most bytes in a group, by `size`; a single larger item goes alone. Without a limit unless given. */
  bytes?: number | undefined
  /** The size of an item in bytes. Given if `bytes` is, and only then. */
  size?: ((item: In) => number) | undefined
}

export interface BatchCallOptions {
  /** Rejects the call with its reason when aborted. If its group was not sent yet, the item is taken out of it. */
  signal?: AbortSignal | undefined
}

export interface BatchStats {
  /** Calls whose group was not sent yet. */
  waiting: number
  /** Groups under way. */
  underWay: number
  /** Groups sent so far, and the items in them. */
  groups: number
  items: number
}

export interface Batched<In, Out> {
  /**
   * Settles with what the function answered for this item.
   * @throws InvalidOption, BatchMismatch, BatchRecursion (the function of the batch calls the batch itself, and no
   *   group could go on), what the function threw or answered for this item, and the reason of `signal`
   */
  (item: In, options?: BatchCallOptions): Promise<Out>
  /** Resolves when nothing waits and nothing is under way. */
  flushed(): Promise<void>
  stats(): BatchStats
}

/** Answers with an array as long as `items` and in its order. An Error in it rejects that item's caller alone. */
export type BatchFunction<In, Out> = (items: In[]) => PromiseLike<readonly (Out | Error)[]> | readonly (Out | Error)[]

/**
 * Groups calls. One that comes when no group is under way is sent at the end of the event loop's tick, with whatever else
 * came in it; calls that come meanwhile form the next group. So nobody waits without need.
 * The function is called for many callers, so it runs in the asynchronous context (`AsyncLocalStorage`) in which
 * `batch` was called, not in one of theirs.
 * @throws InvalidOption
 * @example
 * const loadUser = batch((ids: number[]) => usersInOrder(ids), { max: 500 })
 * const user = await loadUser(7)
 */
export function batch<In, Out>(fn: BatchFunction<In, Out>, options: BatchOptions<In> = {}): Batched<In, Out> {
  const { limits, size } = checked(fn, options)
  const sent = { groups: 0, items: 0 }
  const nested = new NestedCalls(limits.calls)
  const load = inThisContext((items: In[]) => nested.run(() => fn(items)))
  const gather = new Batcher<In, Out>(
    async (items) => {
      const { length } = items
      sent.groups++
      sent.items += length
      const answers = await load(items)
      // The number is that of before the call, which got the array itself and may have changed it.
      if (Array.isArray(answers) && answers.length === length) return answers
      const got = Array.isArray(answers) ? `an array of ${answers.length}` : kindOf(answers)
      throw new MillpondError(
        'BatchMismatch',
        `batch: the function must answer with an array of one element for each of its ${length} items; got ${got}`,
      )
    },
    limits,
    isError,
  )
  // Not async: the promise of the gathering is the caller's own, without another around it.
  const call = (item: In, callOptions?: BatchCallOptions): Promise<Out> => {
    try {
      const signal = signalOf(callOptions, 'a call of a batch')
      const bytes = size === undefined ? 0 : sizeOf(item, size)
      return nested.call(() => gather.add(item, bytes, signal))
    } catch (error) {
      return Promise.reject(error)
    }
  }
  return Object.assign(call, {
    flushed: () => gather.flushed(),
    stats: () => ({ waiting: gather.waiting, underWay: gather.underWay, ...sent }),
  })
}

const RULES: Rules<BatchOptions<never>> = {
  max: isInteger(1, 1_000_000),
  within: isDuration(0),
  concurrency: isInteger(1, 10_000),
  bytes: isInteger(1, Number.MAX_SAFE_INTEGER),
  size: isFunction,
}

function checked<In, Out>(fn: BatchFunction<In, Out>, options: BatchOptions<In>) {
  checkFunction(fn, 'batch takes a function first')
  const given = checkOptions<BatchOptions<In>>(options, RULES, 'batch')
  if ((given.bytes === undefined) !== (given.size === undefined)) {
    throw new MillpondError('InvalidOption', 'batch: bytes and size go together; give both or neither')
  }
  const limits = {
    items: given.max ?? 500,
    bytes: given.bytes ?? Number.POSITIVE_INFINITY,
    calls: given.concurrency ?? 1,
    within: milliseconds(given.within ?? 0, 'within'),
  }
  return { limits, size: given.size }
}

function sizeOf<In>(item: In, size: (item: In) => number): number {
  const bytes = size(item)
  if (typeof bytes === 'number' && bytes >= 0 && bytes < Number.POSITIVE_INFINITY) return bytes
  throw new MillpondError(
    'InvalidOption',
    `batch: size must answer with a number of bytes; got ${typeof bytes === 'number' ? bytes : kindOf(bytes)}`,
  )
}
