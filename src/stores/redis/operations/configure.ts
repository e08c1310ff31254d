/** A queue's settings, on all of its partitions. */
import { isDeepStrictEqual } from 'node:util'
import { type QueueSettings, setsNothing } from '../../../store.ts'
import { DEFAULT_BACKOFF } from '../../../values/backoff.ts'
import { MillpondError } from '../../../values/errors.ts'
import type { GroupLimits } from '../../../values/limits.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import type { Partition } from '../partition.ts'
import { pack, rateList } from '../wire.ts'

/** @throws InvalidOption where the capacity is less than the partitions: each has its share */
export async function configure(context: Context, settings: QueueSettings): Promise<void> {
  const { calls, queues, notifier, settings: made } = context
  calls.assertOpen()
  if (setsNothing(settings)) return
  const { queue, capacity } = settings
  await queues.create(queue)
  const partitions = queues.known(queue) ?? []
  const count = partitions.length
  if (typeof capacity === 'number' && capacity < count) {
    const message = `capacity must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
    throw new MillpondError('InvalidOption', message, { queue })
  }
  if (LIMITS.some((name) => settings[name] ?? false)) oneOf(partitions, queue)
  await Promise.all(partitions.map((partition) => send(context, partition, settings)))
  made.set(queue, { ...made.get(queue), ...settings })
  if (capacity !== undefined) notifier.local.ring('room', queue)
  if (settings.paused === false || LIMITS.some((name) => settings[name] !== undefined))
    notifier.local.ring('work', queue)
}

const LIMITS = ['running', 'rate', 'grouped', 'groupRunning', 'groupRate'] as const

/** The partition of a queue that is to have limits. @throws NotSupported where there are several: nobody counts the jobs of all */
function oneOf(partitions: readonly Partition[], queue: string): Partition {
  const [partition, other] = partitions
  if (partition !== undefined && other === undefined) return partition
  const message = `limits need a queue of one partition; ${queue} is split into ${partitions.length}`
  throw new MillpondError('NotSupported', message, { queue })
}

/** @throws NotSupported where the queue is split into partitions */
export async function limitGroup(context: Context, queue: string, group: string, limits: GroupLimits | null) {
  const { calls, queues, notifier } = context
  calls.assertOpen()
  await queues.create(queue)
  const partition = oneOf(queues.known(queue) ?? [], queue)
  const own = limits && [limits.running ?? false, limits.rate === null ? false : rateList(limits.rate), limits.weight]
  const [listed] = await callScript(context, 'limit-group', partition, { head: [group, own], safe: true })
  if (listed === 0) await confirmListed(context, partition)
  notifier.local.ring('work', queue)
}

/** The server knows of no settings of this queue: it was emptied, or came back with less. What was set here is set again. */
export function restoreSettings(context: Context, queue: string): void {
  const made = context.settings.get(queue)
  if (made === undefined || isDefault(made)) return
  // Once. Where that fails, the next call that finds the settings missing sends them again.
  context.settings.delete(queue)
  configure(context, made).catch(() => context.settings.set(queue, { ...made, ...context.settings.get(queue) }))
}

/** No job of the queue starts for so many ms, in any partition. */
export async function pauseQueue(context: Context, partitions: readonly Partition[], pause: number): Promise<void> {
  const items = ['pause', pack(pause)]
  await Promise.all(partitions.map((partition) => callScript(context, 'configure', partition, { items, safe: true })))
}

async function send(context: Context, partition: Partition, settings: QueueSettings): Promise<void> {
  const { queue: _, backoff, capacity, rate, groupRate, ...rest } = settings
  const { count, index } = partition
  const share = typeof capacity === 'number' ? Math.floor((capacity + count - 1 - index) / count) : capacity
  const policy = backoff && [backoff.base, backoff.factor, backoff.max, backoff.jitter]
  const rates = { rate: rate && rateList(rate), groupRate: groupRate && rateList(groupRate) }
  const given = Object.entries({ ...rest, ...rates, capacity: share, backoff: policy }).filter(
    ([, value]) => value !== undefined,
  )
  const items = given.flatMap(([name, value]) => [name, pack(value)])
  const [listed] = await callScript(context, 'configure', partition, { items, safe: true })
  if (listed === 0) await confirmListed(context, partition)
}

/** After something was stored in a partition that is not listed yet: makes sure that the queue is in the list, although it may just be removed. */
export async function confirmListed(context: Context, partition: Partition): Promise<void> {
  await context.queues.confirm(partition)
  await callScript(context, 'listed', partition)
}

const DEFAULTS = {
  capacity: null,
  keepDone: 3_600_000,
  keepDead: 604_800_000,
  paused: false,
  attempts: 10,
  backoff: DEFAULT_BACKOFF,
  lease: 30_000,
  timeout: null,
  running: null,
  rate: null,
  groupRunning: null,
  groupRate: null,
}

/** Of a queue that was removed because nobody used it: it need not come back. */
const isDefault = ({ queue: _, ...made }: QueueSettings): boolean =>
  isDeepStrictEqual({ ...DEFAULTS, ...made }, DEFAULTS)
