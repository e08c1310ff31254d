/** A queue's settings, on all of its partitions. */
import { isDeepStrictEqual } from 'node:util'
import {
  type GivenSettings,
  type Input,
  type QueueSettings,
  type SettingName,
  type SettingsChange,
  type SettingsReport,
  setsNothing,
} from '../../../store.ts'
import { isMillpondError, MillpondError } from '../../../values/errors.ts'
import type { GroupLimits, Rate } from '../../../values/limits.ts'
import { burstOf } from '../../../values/rate.ts'
import { DEFAULTS } from '../../defaults.ts'
import { givenFrom, givenTexts, NOTHING_GIVEN, type Settled, settle } from '../../given-settings.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { groupIndex, type Partition } from '../partition.ts'
import { pack, rateList, textIn } from '../wire.ts'

const LIMITS = ['running', 'rate', 'grouped', 'groupRunning', 'groupRate'] as const

/** @throws InvalidOption where a number that the partitions share is less than theirs */
export async function configure(context: StoreContext, change: SettingsChange): Promise<SettingName[]> {
  const { calls, notifier, settings: made } = context
  calls.assertOpen()
  if (setsNothing(change)) return []
  const { queue, by, clear: _, ...values } = change
  const settled = await onAll(context, queue, (partition) => settleIn(context, partition, change))
  if (by !== 'operator') made.set(queue, { ...made.get(queue), ...values, queue })
  const [{ apply, overridden } = { apply: {}, overridden: [] }] = settled
  if (apply.capacity !== undefined) notifier.local.ring('room', queue)
  if (apply.paused === false || LIMITS.some((name) => apply[name] !== undefined)) notifier.local.ring('work', queue)
  return overridden
}

/**
 * Once more where a partition was not listed yet: `remove` may have dropped what others of the queue had taken just before.
 * @param send answers whether the partition is listed, and more
 */
async function onAll<Sent extends { listed: boolean }>(
  { queues }: StoreContext,
  queue: string,
  send: (partition: Partition) => Promise<Sent>,
): Promise<Sent[]> {
  for (let tries = 1; ; tries++) {
    const { partitions } = await queues.create(queue)
    const sent = await Promise.all(partitions.map(send))
    if (partitions.length === 1 || tries === 2 || sent.every(({ listed }) => listed)) return sent
  }
}

/** What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here. */
async function settleIn(
  context: StoreContext,
  partition: Partition,
  change: SettingsChange,
): Promise<Settled & { listed: boolean }> {
  let known = NOTHING_GIVEN
  for (;;) {
    const settled = settle(known, change)
    const { listed, others } = await send(
      context,
      partition,
      { queue: partition.queue, ...settled.apply },
      { known, given: settled.given },
    )
    if (others === undefined) return { ...settled, listed }
    known = others
  }
}

export async function settings(context: StoreContext, { queue }: Input<'settings'>): Promise<SettingsReport | null> {
  context.calls.assertOpen()
  const [first] = (await context.queues.listed(queue)) ?? []
  const [code, operator, paused, grouped] = first === undefined ? [] : await callScript(context, 'settings', first)
  if (code === undefined) return null
  const given = givenOf(code, operator)
  const values = { ...DEFAULTS, ...given.code, ...given.operator, paused: paused === 1, grouped: grouped === 1 }
  return { values, ...given }
}

const givenOf = (code: unknown, operator: unknown): GivenSettings =>
  givenFrom(textIn(code) || null, textIn(operator) || null)

/** @returns `others`: what is kept instead of `known`; undefined: the settings were taken */
async function send(
  context: StoreContext,
  partition: Partition,
  settings: QueueSettings,
  sides?: { known: GivenSettings; given: GivenSettings },
): Promise<{ listed: boolean; others?: GivenSettings }> {
  const { queue: _, backoff, capacity, running, rate, groupRate, ...rest } = settings
  const given = Object.entries({
    ...rest,
    capacity: capacity && partition.shareOf(capacity, 'capacity'),
    running: running && partition.shareOf(running, 'limits.running'),
    rate: rate && rateShare(partition, rate, "limits.rate's burst"),
    groupRate: groupRate && rateList(groupRate),
    backoff: backoff && [backoff.base, backoff.factor, backoff.max, backoff.jitter],
  }).filter(([, value]) => value !== undefined)
  const items = given.flatMap(([name, value]) => [name, pack(value)])
  const head = sides === undefined ? [] : headOf(sides.known, sides.given)
  const [listed, code, operator] = await callScript(context, 'configure', partition, { head, items, safe: true })
  if (code !== undefined) return { listed: true, others: givenOf(code, operator) }
  if (listed === 0) await confirmListed(context, partition)
  return { listed: listed !== 0 }
}

function headOf(known: GivenSettings, given: GivenSettings): unknown[] {
  const [before, after] = [givenTexts(known), givenTexts(given)]
  return [`${before.code ?? ''}\n${before.operator ?? ''}`, after.code ?? '', after.operator ?? '']
}

/** As scripts keep it: of several partitions each starts its share of the jobs, and keeps the burst of the whole queue beside its own. */
const rateShare = (partition: Partition, rate: Rate, name: string): unknown[] =>
  partition.count === 1
    ? rateList(rate)
    : [rate.count, rate.per * partition.count, partition.shareOf(burstOf(rate), name), rate.burst]

/**
 * A group's jobs are in one partition. Those without a group are in all of them, which share their limits.
 * @throws InvalidOption where such a limit is less than the partitions
 */
export async function limitGroup(context: StoreContext, { queue, group, limits }: Input<'limitGroup'>): Promise<void> {
  const { calls, notifier } = context
  calls.assertOpen()
  await onAll(context, queue, (partition) =>
    group === '' || partition.index === groupIndex(partition.count, group)
      ? sendGroup(context, partition, group, limits)
      : send(context, partition, { queue, grouped: true }),
  )
  notifier.local.ring('work', queue)
}

async function sendGroup(context: StoreContext, partition: Partition, group: string, limits: GroupLimits | null) {
  const { running = null, rate = null } = limits ?? {}
  const shares =
    group === ''
      ? [running && partition.shareOf(running, 'running'), rate && rateShare(partition, rate, "rate's burst")]
      : [running, rate && rateList(rate)]
  const head = [group, limits && [...shares.map((share) => share ?? false), limits.weight]]
  const [listed] = await callScript(context, 'limit-group', partition, { head, safe: true })
  if (listed === 0) await confirmListed(context, partition)
  return { listed: listed !== 0 }
}

/** The server knows of no settings of this queue: it was emptied, or came back with less. What was set here is set again. */
export function restoreSettings(context: StoreContext, queue: string): void {
  const made = context.settings.get(queue)
  if (made === undefined || isDefault(made)) return
  // Once. Where that fails, the next call that finds the settings missing sends them again.
  context.settings.delete(queue)
  configure(context, made).catch(() => context.settings.set(queue, { ...made, ...context.settings.get(queue) }))
}

/** No job of the queue starts for so many ms, in any partition. */
export async function pauseQueue(
  context: StoreContext,
  partitions: readonly Partition[],
  pause: number,
): Promise<void> {
  const items = ['pause', pack(pause)]
  await Promise.all(partitions.map((partition) => callScript(context, 'configure', partition, { items, safe: true })))
}

/**
 * After something was stored in a partition that is not listed yet: makes sure that the queue is in the list, although it may just be
 * removed.
 */
export async function confirmListed(context: StoreContext, partition: Partition): Promise<void> {
  try {
    await context.queues.confirm(partition)
    await noteListed(context, partition)
  } catch (error) {
    if (!isMillpondError(error, 'StoreFull')) throw error
    const message =
      `what was stored in the queue ${partition.queue} could not be confirmed, ` +
      'since Redis cannot write just now; it can be repeated safely'
    throw new MillpondError('StoreUnavailable', message, { queue: partition.queue, cause: error })
  }
}

export async function noteListed(context: StoreContext, partition: Partition): Promise<void> {
  await callScript(context, 'listed', partition, { head: [partition.count] })
}

/** Of a queue that was removed because nobody used it: it need not come back. */
const isDefault = ({ queue: _, ...made }: QueueSettings): boolean =>
  isDeepStrictEqual({ ...DEFAULTS, ...made }, DEFAULTS)
