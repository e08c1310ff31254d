/** Counts and histograms per queue, its partitions summed. */
import { type HistogramSlice, JOB_STATES, type QueueStats } from '../../../store.ts'
import { merge } from '../../../values/histogram.ts'
import type { LimitSettings } from '../../../values/limits.ts'
import { givenFrom } from '../../given-settings.ts'
import { callScript } from '../connection/script-call.ts'
import type { Context } from '../context.ts'
import type { Partition } from '../partition.ts'
import { chunks } from '../per-partition.ts'
import { bytesIn, leastOf, listBefore, numberIn, numberOrNull, rateIn, textIn, timeOrNull } from '../wire.ts'

/** Partitions asked at once: others' calls must not wait behind thousands. */
const MAX_CALLS_AT_ONCE = 50

export async function stats(
  context: Context,
  { queue, minutes = 0 }: { queue?: string; minutes?: number },
): Promise<QueueStats[]> {
  const { calls, queues } = context
  calls.assertOpen()
  const partitions =
    queue === undefined ? [...(await queues.all()).values()].flat() : ((await queues.listed(queue)) ?? [])
  return statsOf(context, partitions, minutes)
}

/** Per queue of these partitions. */
export async function statsOf(
  context: Context,
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
function statsIn(reply: readonly unknown[], { queue, count: partitions }: Partition): QueueStats {
  const [paused, capacity, ...rest] = reply
  const [scheduled = 0, waiting = 0, running = 0, done = 0, dead = 0, cancelled = 0] = rest.slice(0, 6).map(numberIn)
  const histograms: HistogramSlice[] = []
  for (const minute of rest.slice(13)) {
    const figures = listBefore(bytesIn(minute)).list.slice(1).map(numberIn)
    for (const [priority = 0, metric, bucket = 0, count = 0] of chunks(figures, 4)) {
      addSlice(histograms, { queue, priority, metric: metric === 0 ? 'wait' : 'run', buckets: { [bucket]: count } })
    }
  }
  return {
    queue,
    paused: paused === 1,
    capacity: timeOrNull(capacity),
    overrides: givenFrom(null, textIn(rest[11]) || null).operator,
    lastClaim: timeOrNull(rest[12]),
    counts: { scheduled, waiting, running, done, dead, cancelled },
    oldestWaiting: timeOrNull(rest[6]),
    limits: limitsIn(bytesIn(rest[7]), partitions),
    nextStart: timeOrNull(rest[8]),
    groupsAtLimit: numberIn(rest[9]),
    groupsHeld: numberIn(rest[10]),
    histograms,
  }
}

function limitsIn(bytes: Buffer, partitions: number): LimitSettings | null {
  if (bytes.length === 0) return null
  const [running, rate, grouped, groupRunning, groupRate] = listBefore(bytes).list
  return {
    running: numberOrNull(running),
    rate: rateIn(rate, partitions),
    grouped: grouped === true,
    groupRunning: numberOrNull(groupRunning),
    groupRate: rateIn(groupRate),
  }
}

function addPart(into: QueueStats, part: QueueStats): void {
  for (const state of JOB_STATES) into.counts[state] += part.counts[state]
  if (into.capacity !== null && part.capacity !== null) into.capacity += part.capacity
  if (part.oldestWaiting !== null) into.oldestWaiting = Math.max(into.oldestWaiting ?? 0, part.oldestWaiting)
  if (part.limits && into.limits) addLimits(into.limits, part.limits)
  else into.limits ??= part.limits
  into.nextStart = leastOf(into.nextStart, part.nextStart)
  into.lastClaim = leastOf(into.lastClaim, part.lastClaim)
  into.groupsAtLimit += part.groupsAtLimit
  into.groupsHeld += part.groupsHeld
  for (const slice of part.histograms) addSlice(into.histograms, slice)
}

/** The rates are the same in all partitions. */
function addLimits(into: LimitSettings, part: LimitSettings): void {
  if (into.running !== null && part.running !== null) into.running += part.running
  into.grouped ||= part.grouped
}

/** Noted in the first partition, as figures are. */
export async function noteClaims(context: Context, names: readonly string[]): Promise<boolean[]> {
  context.calls.assertOpen()
  return Promise.all(
    names.map(async (queue) => {
      const [first] = (await context.queues.listed(queue)) ?? []
      return first !== undefined && (await callScript(context, 'note-claims', first))[0] === 1
    }),
  )
}

/** Into the slice of the same priority and metric. */
function addSlice(slices: HistogramSlice[], slice: HistogramSlice): void {
  const sum = slices.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
  if (sum === undefined) slices.push(slice)
  else merge(sum.buckets, slice.buckets)
}

export async function record(context: Context, slices: readonly HistogramSlice[]): Promise<void> {
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
