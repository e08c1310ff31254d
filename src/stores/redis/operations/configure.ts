/** A queue's settings, on all of its partitions. */
import { isDeepStrictEqual } from 'node:util'
import { type QueueSettings, setsNothing } from '../../../store.ts'
import { DEFAULT_BACKOFF } from '../../../values/backoff.ts'
import { MillpondError } from '../../../values/errors.ts'
import type { GroupLimits, Rate } from '../../../values/limits.ts'
import { burstOf } from '../../../values/rate.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import { groupIndex, type Partition } from '../partition.ts'
import { pack, rateList } from '../wire.ts'

/** @throws InvalidOption where a number that the partitions share is less than theirs */
export async function configure(context: Context, settings: QueueSettings): Promise<void> {
  const { calls, queues, notifier, settings: made } = context
  calls.assertOpen()
  if (setsNothing(settings)) return
  const { queue, capacity } = settings
  await queues.create(queue)
  const partitions = queues.known(queue) ?? []
  assertShared(partitions, 'capacity', capacity)
  assertShared(partitions, 'limits.running', settings.running)
  assertShared(partitions, "limits.rate's burst", settings.rate && burstOf(settings.rate))
  await Promise.all(partitions.map((partition) => send(context, partition, settings)))
  made.set(queue, { ...made.get(queue), ...settings })
  if (capacity !== undefined) notifier.local.ring('room', queue)
  if (settings.paused === false || LIMITS.some((name) => settings[name] !== undefined))
    notifier.local.ring('work', queue)
}

const LIMITS = ['running', 'rate', 'grouped', 'groupRunning', 'groupRate'] as const

/** @throws InvalidOption where some partition would have no share */
function assertShared(partitions: readonly Partition[], name: string, total: number | null | undefined): void {
  const count = partitions.length
  if (total === undefined || total === null || total >= count) return
  const queue = partitions[0]?.queue ?? ''
  const message = `${name} must be at least ${count}, as the queue ${queue} is split into ${count} partitions and each has its share`
  throw new MillpondError('InvalidOption', message, { queue })
}

/** As scripts keep it: of several partitions each starts its share of the jobs, and keeps the burst of the whole queue beside its own. */
const rateShare = (partition: Partition, rate: Rate): unknown[] =>
  partition.count === 1
    ? rateList(rate)
    : [rate.count, rate.per * partition.count, partition.shareOf(burstOf(rate)), rate.burst]

/**
 * A group's jobs are in one partition. Those without a group are in all of them, which share their limits.
 * @throws InvalidOption where such a limit is less than the partitions
 */
export async function limitGroup(context: Context, queue: string, group: string, limits: GroupLimits | null) {
  const { calls, queues, notifier } = context
  calls.assertOpen()
  await queues.create(queue)
  const partitions = queues.known(queue) ?? []
  const isShared = group === '' && partitions.length > 1
  if (isShared && limits !== null) {
    assertShared(partitions, 'running', limits.running)
    assertShared(partitions, "rate's burst", limits.rate && burstOf(limits.rate))
  }
  const home = groupIndex(partitions.length, group)
  await Promise.all(
    partitions.map((partition) => {
      if (!isShared && partition.index !== home) return send(context, partition, { queue, grouped: true })
      return sendGroup(context, partition, group, limits, isShared)
    }),
  )
  notifier.local.ring('work', queue)
}

async function sendGroup(
  context: Context,
  partition: Partition,
  group: string,
  limits: GroupLimits | null,
  isShared: boolean,
): Promise<void> {
  const running = limits?.running && isShared ? partition.shareOf(limits.running) : limits?.running
  const rate = limits?.rate && (isShared ? rateShare(partition, limits.rate) : rateList(limits.rate))
  const head = [group, limits && [running ?? false, rate ?? false, limits.weight]]
  const [listed] = await callScript(context, 'limit-group', partition, { head, safe: true })
  if (listed === 0) await confirmListed(context, partition)
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
  const { queue: _, backoff, capacity, running, rate, groupRate, ...rest } = settings
  const shareOf = (total: number | null | undefined) => (typeof total === 'number' ? partition.shareOf(total) : total)
  const policy = backoff && [backoff.base, backoff.factor, backoff.max, backoff.jitter]
  const shares = { capacity: shareOf(capacity), running: shareOf(running), rate: rate && rateShare(partition, rate) }
  const given = Object.entries({
    ...rest,
    ...shares,
    groupRate: groupRate && rateList(groupRate),
    backoff: policy,
  }).filter(([, value]) => value !== undefined)
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
