/** Counts and histograms per queue, its partitions summed. */

import type { Input } from '../../../store.ts'
import type { HistogramSlice } from '../../../values/figures/histogram.ts'
import { merge } from '../../../values/figures/histogram.ts'
import type { QueueStats, Totals } from '../../../values/operations/requests.ts'
import type { LimitSettings } from '../../../values/settings/limits.ts'
import { givenFrom } from '../../given-settings.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import type { Partition } from '../partition.ts'
import { chunks } from '../per-partition.ts'
import { bytesIn, leastOf, mapIn, numberIn, numberOrNull, rateIn, unexpected, unpack } from '../wire.ts'
import { lastClaims } from './workers.ts'

/** Partitions asked at once: others' calls must not wait behind thousands. */
const MAX_CALLS_AT_ONCE = 50

export async function stats(context: StoreContext, { queue, minutes = 0 }: Input<'stats'>): Promise<QueueStats[]> {
  const { calls, queues } = context
  calls.assertOpen()
  const partitions =
    queue === undefined ? [...(await queues.all()).values()].flat() : ((await queues.listed(queue)) ?? [])
  const [told, last] = await Promise.all([
    statsOf(context, partitions, minutes),
    lastClaims(context, [...new Set(partitions.map((partition) => partition.queue))]),
  ])
  return told.map((one) => ({ ...one, lastClaim: last.get(one.queue) ?? null }))
}

/** Per queue of these partitions, but for `lastClaim`. */
export async function statsOf(
  context: StoreContext,
  partitions: readonly Partition[],
  minutes: number,
): Promise<QueueStats[]> {
  const merged = new Map<string, QueueStats>()
  for (const some of chunks(partitions, MAX_CALLS_AT_ONCE)) {
    const parts = await Promise.all(
      some.map(async (partition) =>
        statsIn(await callScript(context, 'stats', partition, { head: [minutes] }), partition),
      ),
    )
    for (const part of parts) {
      const known = merged.get(part.queue)
      if (known === undefined) merged.set(part.queue, part)
      else addPart(known, part)
    }
  }
  return [...merged.values()]
}

/** As `stats.lua` answers: as many minutes as were asked for, of one partition. */
function statsIn([packed]: readonly unknown[], { queue, count: partitions }: Partition): QueueStats {
  const told = mapIn(unpack(bytesIn(packed)))
  const { operator } = told
  const histograms: HistogramSlice[] = []
  for (const minute of listsIn(told.minutes)) {
    for (const [priority = 0, metric, bucket = 0, count = 0] of chunks(minute.slice(1).map(numberIn), 4)) {
      addSlice(histograms, { queue, priority, metric: metric === 0 ? 'wait' : 'run', buckets: { [bucket]: count } })
    }
  }
  return {
    queue,
    paused: told.paused === true,
    capacity: numberOrNull(told.capacity),
    overrides: givenFrom(null, typeof operator === 'string' ? operator : null).operator,
    lastClaim: null,
    counts: numbersIn(told.counts, COUNTS),
    totals: numbersIn(told.totals, TOTALS),
    oldestWaiting: numberOrNull(told.oldestWaiting),
    limits: limitsIn(told.limits, partitions),
    nextStart: numberOrNull(told.nextStart),
    groupsAtLimit: numberIn(told.groupsAtLimit),
    groupsHeld: numberIn(told.groupsHeld),
    histograms,
  }
}

const COUNTS: QueueStats['counts'] = {
  blocked: 0,
  scheduled: 0,
  waiting: 0,
  running: 0,
  done: 0,
  dead: 0,
  cancelled: 0,
}
const TOTALS: Totals = { pushed: 0, done: 0, failed: 0, dead: 0, cancelled: 0, lost: 0, released: 0 }

/** The numbers of a map by the names of `names`. */
function numbersIn<Name extends string>(map: unknown, names: Record<Name, number>): Record<Name, number> {
  const told = mapIn(map)
  const numbers = { ...names }
  for (const name in numbers) numbers[name] = numberIn(told[name] ?? 0)
  return numbers
}

function listsIn(value: unknown): readonly (readonly unknown[])[] {
  if (Array.isArray(value) && value.every(Array.isArray)) return value
  throw unexpected(value, 'lists')
}

function limitsIn(list: unknown, partitions: number): LimitSettings | null {
  if (!Array.isArray(list)) return null
  const [running, rate, grouped, groupRunning, groupRate] = list as readonly unknown[]
  return {
    running: numberOrNull(running),
    rate: rateIn(rate, partitions),
    grouped: grouped === true,
    groupRunning: numberOrNull(groupRunning),
    groupRate: rateIn(groupRate),
  }
}

function addPart(into: QueueStats, part: QueueStats): void {
  add(into.counts, part.counts)
  add(into.totals, part.totals)
  if (into.capacity !== null && part.capacity !== null) into.capacity += part.capacity
  if (part.oldestWaiting !== null) into.oldestWaiting = Math.max(into.oldestWaiting ?? 0, part.oldestWaiting)
  if (part.limits && into.limits) addLimits(into.limits, part.limits)
  else into.limits ??= part.limits
  into.nextStart = leastOf(into.nextStart, part.nextStart)
  into.groupsAtLimit += part.groupsAtLimit
  into.groupsHeld += part.groupsHeld
  for (const slice of part.histograms) addSlice(into.histograms, slice)
}

/** The rates are the same in all partitions. */
function addLimits(into: LimitSettings, part: LimitSettings): void {
  if (into.running !== null && part.running !== null) into.running += part.running
  into.grouped ||= part.grouped
}

function add<Name extends string>(into: Record<Name, number>, part: Record<Name, number>): void {
  for (const name in into) into[name] += part[name]
}

/** Into the slice of the same priority and metric. */
function addSlice(slices: HistogramSlice[], slice: HistogramSlice): void {
  const sum = slices.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
  if (sum === undefined) slices.push(slice)
  else merge(sum.buckets, slice.buckets)
}

export async function record(context: StoreContext, { slices }: Input<'record'>): Promise<void> {
  context.calls.assertOpen()
  for (const [queue, own] of Map.groupBy(slices, (slice) => slice.queue)) {
    // Figures of all partitions go into the first: they are summed anyhow.
    const [partition] = await context.queues.look(queue)
    const figures = own.flatMap(({ priority, metric, buckets }) => {
      const kind = metric === 'wait' ? 0 : 1
      return Object.entries(buckets).flatMap(([bucket, count]) => [priority, kind, Number(bucket), count])
    })
    if (partition !== undefined) await callScript(context, 'record', partition, { head: [figures] })
  }
}
