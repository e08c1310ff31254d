/** Counts and histograms per queue. */
import type { Input } from '../../../store.ts'
import type { HistogramSlice } from '../../../values/figures/histogram.ts'
import { merge } from '../../../values/figures/histogram.ts'
import type { QueueStats, Totals } from '../../../values/operations/requests.ts'
import type { LimitSettings } from '../../../values/settings/limits.ts'
import { givenFrom } from '../../given-settings.ts'
import { chunks } from '../chunks.ts'
import { callScript } from '../connection/script-call.ts'
import type { StoreContext } from '../context.ts'
import { bytesIn, mapIn, numberIn, numberOrNull, rateIn, textIn, unexpected, unpack } from '../wire.ts'

/** Queues asked at once: others' calls must not wait behind thousands. */
const MAX_CALLS_AT_ONCE = 50

export async function stats(context: StoreContext, { queue, minutes = 0 }: Input<'stats'>): Promise<QueueStats[]> {
  const names = queue === undefined ? await queuesOf(context) : [queue]
  const all: QueueStats[] = []
  for (const some of chunks(names, MAX_CALLS_AT_ONCE)) {
    const answers = await Promise.all(
      some.map((name) => callScript(context, 'stats', { queue: name, head: [minutes] })),
    )
    for (const [at, [packed]] of answers.entries()) {
      if (packed !== undefined) all.push(statsIn(some[at] ?? '', mapIn(unpack(bytesIn(packed)))))
    }
  }
  return all
}

const queuesOf = async (context: StoreContext): Promise<string[]> => (await callScript(context, 'queues')).map(textIn)

/** As `stats.lua` answers: as many minutes as were asked for. */
function statsIn(queue: string, told: Readonly<Record<string, unknown>>): QueueStats {
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
    lastClaim: numberOrNull(told.lastClaim),
    counts: numbersIn(told.counts, COUNTS),
    totals: numbersIn(told.totals, TOTALS),
    oldestWaiting: numberOrNull(told.oldestWaiting),
    limits: limitsIn(told.limits),
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

function limitsIn(list: unknown): LimitSettings | null {
  if (!Array.isArray(list)) return null
  const [running, rate, grouped, groupRunning, groupRate] = list as readonly unknown[]
  return {
    running: numberOrNull(running),
    rate: rateIn(rate),
    grouped: grouped === true,
    groupRunning: numberOrNull(groupRunning),
    groupRate: rateIn(groupRate),
  }
}

/** Into the slice of the same priority and metric. */
function addSlice(slices: HistogramSlice[], slice: HistogramSlice): void {
  const sum = slices.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
  if (sum === undefined) slices.push(slice)
  else merge(sum.buckets, slice.buckets)
}

export async function record(context: StoreContext, { slices }: Input<'record'>): Promise<void> {
  const calls = [...Map.groupBy(slices, (slice) => slice.queue)].map(([queue, own]) => {
    const figures = own.flatMap(({ priority, metric, buckets }) => {
      const kind = metric === 'wait' ? 0 : 1
      return Object.entries(buckets).flatMap(([bucket, count]) => [priority, kind, Number(bucket), count])
    })
    return callScript(context, 'record', { queue, head: [figures] })
  })
  await Promise.all(calls)
}
