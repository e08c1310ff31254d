import type { HistogramSlice, Metric, QueueStats } from '../../../store.ts'
import type { HeldBack, LimitSettings } from '../../../values/limits.ts'
import { integer, integerOrNull, type Row, text } from '../connection/values.ts'
import { type Context, QueueChanges } from '../queues.ts'

const MINUTE = 60_000

export function stats(context: Context, request: { queue?: string; minutes?: number }): QueueStats[] {
  const { statements, now } = context
  const { queue = null, minutes = 0 } = request
  const slices = minutes > 0 ? histograms(context, queue, Math.floor(now / MINUTE) - minutes + 1) : []
  return statements
    .get('stats/queues')
    .all({ queue })
    .map((row): QueueStats => {
      const name = text(row.name)
      const waiting = integer(row.waiting)
      // Another process may have claimed the last one since the counts were read.
      const due = waiting === 0 ? null : integerOrNull(statements.get('stats/oldest').get({ queue: name })?.due_at)
      return {
        queue: name,
        paused: integer(row.paused) !== 0,
        capacity: integerOrNull(row.capacity),
        counts: {
          scheduled: integer(row.scheduled),
          waiting,
          running: integer(row.running),
          done: integer(row.done),
          dead: integer(row.dead),
          cancelled: integer(row.cancelled),
        },
        oldestWaiting: due === null ? null : now - due,
        ...limitsNow(context, name, row),
        histograms: slices.filter((slice) => slice.queue === name),
      }
    })
}

function limitsNow({ statements, now }: Context, queue: string, row: Row): HeldBack & { limits: LimitSettings | null } {
  const changes = new QueueChanges(queue, row)
  const { limits } = changes
  const groups = limits.grouped ? statements.get('stats/blocked').get({ queue, now }) : undefined
  return {
    limits: limits.running === null && limits.rate === null && !limits.grouped ? null : limits,
    nextStart: changes.startableIn(now, 1),
    groupsAtLimit: integer(groups?.at_limit ?? 0),
    groupsHeld: integer(groups?.held ?? 0),
  }
}

function metricFrom(value: unknown): Metric {
  if (value === 'wait' || value === 'run') return value
  throw new TypeError(`millpond: ${String(value)} is no metric`)
}

function histograms({ statements }: Context, only: string | null, minute: number): HistogramSlice[] {
  const slices: HistogramSlice[] = []
  let slice: HistogramSlice | undefined
  for (const row of statements.get('stats/histograms').all({ queue: only, minute })) {
    const queue = text(row.queue)
    const priority = integer(row.priority)
    const metric = metricFrom(row.metric)
    if (slice?.queue !== queue || slice.priority !== priority || slice.metric !== metric) {
      slice = { queue, priority, metric, buckets: {} }
      slices.push(slice)
    }
    slice.buckets[integer(row.bucket)] = integer(row.count)
  }
  return slices
}

export function record({ statements, now }: Context, slices: readonly HistogramSlice[]): void {
  const minute = Math.floor(now / MINUTE)
  for (const { queue, priority, metric, buckets } of slices) {
    for (const [bucket, count] of Object.entries(buckets)) {
      statements.get('record/record').run({ minute, queue, priority, metric, bucket: Number(bucket), count })
    }
  }
}
