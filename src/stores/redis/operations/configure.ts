/** A queue's settings, on all of its partitions. */
import { isDeepStrictEqual } from 'node:util'
import type { Input } from '../../../store.ts'
import { isMillpondError, MillpondError } from '../../../values/errors/errors.ts'
import type { SettingsReport } from '../../../values/operations/requests.ts'
import type { GroupLimits, Rate } from '../../../values/settings/limits.ts'
import { burstOf } from '../../../values/settings/rate.ts'
import {
  type GivenSettings,
  type QueueSettings,
  type SettingName,
  type SettingsChange,
  setsNothing,
} from '../../../values/settings/settings.ts'
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
  const { apply, overridden } = await onAll(context, queue, ([first, ...others]) =>
    settleIn(context, first, others, change),
  )
  if (by !== 'operator') made.set(queue, { ...made.get(queue), ...values, queue })
  if (apply.capacity !== undefined) notifier.local.ring('room', queue)
  if (apply.paused === false || LIMITS.some((name) => apply[name] !== undefined)) notifier.local.ring('work', queue)
  return overridden
}

/** A queue's, the first of which gives changes to all of them their turns. */
type Partitions = readonly [Partition, ...Partition[]]

/**
 * Once more where a partition was not listed yet: `remove` may have dropped what others of the queue had taken just before.
 * @param send answers whether all partitions were listed, and more
 */
async function onAll<Sent extends { listed: boolean }>(
  { queues }: StoreContext,
  queue: string,
  send: (partitions: Partitions) => Promise<Sent>,
): Promise<Sent> {
  for (let tries = 1; ; tries++) {
    const [first, ...others] = (await queues.create(queue)).partitions
    if (first === undefined) throw new Error(`the queue ${queue} has no partitions`)
    const sent = await send([first, ...others])
    if (others.length === 0 || tries === 2 || sent.listed) return sent
  }
}

/**
 * What comes into effect depends on what others have given. The script changes nothing where that is not what was thought here. The other
 * partitions get all that then holds in the first one.
 */
async function settleIn(
  context: StoreContext,
  first: Partition,
  others: readonly Partition[],
  change: SettingsChange,
): Promise<Settled & { listed: boolean }> {
  const turn = others.length > 0 ? 0 : undefined
  let known: Known = { texts: ['', ''], given: NOTHING_GIVEN }
  for (;;) {
    const settled = settle(known.given, change)
    const { given, apply } = settled
    const sent = await send(context, first, { queue: first.queue, ...apply }, { known: known.texts, given, turn })
    if (sent.others === undefined) {
      const { paused, grouped } = sent
      const whole = {
        ...DEFAULTS,
        ...given.code,
        ...given.operator,
        queue: first.queue,
        paused,
        ...(grouped && { grouped }),
      }
      const sides = { given, turn: sent.turn }
      const all = await Promise.all(others.map((partition) => send(context, partition, whole, sides)))
      return { ...settled, listed: [sent, ...all].every(({ listed }) => listed) }
    }
    known = sent.others
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

/** What code and an operator have given. */
interface Known {
  /** As they are kept: another language may write the same JSON in other words. */
  texts: readonly [code: string, operator: string]
  given: GivenSettings
}

/** Of a change that code or an operator makes. */
interface Sides {
  /** The texts that are thought to be kept there. Unset: whatever is kept. */
  known?: Known['texts']
  given: GivenSettings
  /** See `turn_of` of limits.lua. */
  turn: number | undefined
}

interface Sent {
  listed: boolean
  turn: number
  paused: boolean
  grouped: boolean
  /** What is kept instead of `known`; unset: the settings were taken. */
  others?: Known
}

async function send(
  context: StoreContext,
  partition: Partition,
  settings: QueueSettings,
  sides?: Sides,
): Promise<Sent> {
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
  const head = sides === undefined ? [] : headOf(sides)
  const answer = await callScript(context, 'configure', partition, { head, items, safe: true })
  const [listed, turn, paused, grouped, code, operator] = answer
  const sent = { listed: listed !== 0, turn: Number(turn), paused: paused === 1, grouped: grouped === 1 }
  if (code !== undefined) {
    return { ...sent, others: { texts: [textIn(code), textIn(operator)], given: givenOf(code, operator) } }
  }
  if (!sent.listed) await confirmListed(context, partition)
  return sent
}

function headOf({ known, given, turn }: Sides): unknown[] {
  const after = givenTexts(given)
  return [known?.join('\n') ?? null, after.code ?? '', after.operator ?? '', turn ?? null]
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
  await onAll(context, queue, async (partitions) => {
    const sent = await (group === '' ? limitUngrouped : limitNamed)(context, partitions, group, limits)
    return { listed: sent.every(({ listed }) => listed) }
  })
  notifier.local.ring('work', queue)
}

const limitNamed = (
  context: StoreContext,
  partitions: Partitions,
  group: string,
  limits: GroupLimits | null,
): Promise<{ listed: boolean }[]> =>
  Promise.all(
    partitions.map((partition) =>
      partition.index === groupIndex(partition.count, group)
        ? sendGroup(context, partition, group, limits)
        : send(context, partition, { queue: partition.queue, grouped: true }),
    ),
  )

async function limitUngrouped(
  context: StoreContext,
  [first, ...others]: Partitions,
  group: string,
  limits: GroupLimits | null,
): Promise<{ listed: boolean }[]> {
  if (others.length === 0) return [await sendGroup(context, first, group, limits)]
  const sent = await sendGroup(context, first, group, limits, 0)
  const all = await Promise.all(others.map((partition) => sendGroup(context, partition, group, limits, sent.turn)))
  return [sent, ...all]
}

/** @param turn see `turn_of` of limits.lua */
async function sendGroup(
  context: StoreContext,
  partition: Partition,
  group: string,
  limits: GroupLimits | null,
  turn: number | null = null,
): Promise<{ listed: boolean; turn: number }> {
  const { running = null, rate = null } = limits ?? {}
  const shares =
    group === ''
      ? [running && partition.shareOf(running, 'running'), rate && rateShare(partition, rate, "rate's burst")]
      : [running, rate && rateList(rate)]
  const head = [group, limits && [...shares.map((share) => share ?? false), limits.weight], turn]
  const [listed, taken] = await callScript(context, 'limit-group', partition, { head, safe: true })
  if (listed === 0) await confirmListed(context, partition)
  return { listed: listed !== 0, turn: Number(taken) }
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
