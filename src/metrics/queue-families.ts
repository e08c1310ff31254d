/** The families of a store's queues and workers. Labels are the queue and the state of jobs, and never a group, key or id. */
import type { Figures } from '../pond/figures.ts'
import { type Metric, merge } from '../values/figures/histogram.ts'
import { JOB_STATES, type JobState } from '../values/jobs/records.ts'
import type { QueueStats, Totals, WorkerRecord } from '../values/operations/requests.ts'
import type { Family, Sample } from './exposition.ts'
import { histogramSeries } from './histogram-series.ts'

/** Those that every store counts over all processes. */
const COUNTED_STATES: readonly JobState[] = ['waiting', 'dead']

/** No queue's name begins so. */
export const OTHERS = '_other'

const TOTALS: Readonly<Record<keyof Totals, { name: string; help: string }>> = {
  pushed: { name: 'jobs_pushed', help: 'Jobs that were stored.' },
  done: { name: 'jobs_done', help: 'Jobs that are done.' },
  failed: { name: 'attempts_failed', help: 'Attempts that failed, the last ones of dead jobs included.' },
  dead: { name: 'jobs_dead', help: 'Jobs that died.' },
  cancelled: { name: 'jobs_cancelled', help: 'Jobs that were cancelled.' },
  lost: { name: 'leases_lost', help: 'Claims whose lease ran out.' },
  released: { name: 'claims_released', help: 'Claims that were given back.' },
}

const TIMES: Readonly<Record<Metric, { name: string; help: string }>> = {
  wait: { name: 'job_wait_seconds', help: 'Time from when a job was due to when it started.' },
  run: { name: 'job_run_seconds', help: 'Time from when a job started to when it ended.' },
}

/** A gauge per queue. Those of the queues that are not listed are added, unless `join` says otherwise. */
interface QueueGauge {
  name: string
  help: string
  /** null: the queue has none. */
  of(queue: QueueStats): number | null
  join?: (one: number, other: number) => number
}

const GAUGES: readonly QueueGauge[] = [
  {
    ...{ name: 'oldest_waiting_seconds', join: Math.max },
    help: 'Time since the oldest waiting job was due; 0 if none waits.',
    of: ({ oldestWaiting }) => (oldestWaiting ?? 0) / 1000,
  },
  {
    ...{ name: 'queue_paused', help: '1: claims are stopped.' },
    of: ({ paused }) => Number(paused),
  },
  {
    ...{ name: 'queue_capacity', help: 'Most blocked, scheduled and waiting jobs.' },
    of: ({ capacity }) => capacity,
  },
  {
    ...{ name: 'running_limit', help: 'Most jobs that may run at once.' },
    of: ({ limits }) => limits?.running ?? null,
  },
  {
    ...{ name: 'start_rate_limit', help: 'Most starts per second.' },
    of: ({ limits }) => (limits?.rate ? (limits.rate.count / limits.rate.per) * 1000 : null),
  },
  {
    ...{ name: 'groups_at_limit', help: 'Groups with waiting jobs of which as many run as may.' },
    of: ({ limits, groupsAtLimit }) => (limits?.grouped ? groupsAtLimit : null),
  },
  {
    ...{ name: 'groups_held', help: 'Groups with waiting jobs that a rate or a pause holds back.' },
    of: ({ limits, groupsHeld }) => (limits?.grouped ? groupsHeld : null),
  },
]

/** @param listed queues that have series of their own */
export function queueFamilies({ queues, isExact, workers }: Figures, listed: ReadonlySet<string>): Family[] {
  const own = queues.filter(({ queue }) => listed.has(queue))
  return [
    gauge('queues', 'Queues of the store.', [{ labels: {}, value: queues.length }]),
    gauge('queues_summed', 'Queues that have no series of their own, but are part of queue="_other".', [
      { labels: {}, value: queues.length - own.length },
    ]),
    ...(isExact ? [...totals(own), ...histograms(own)] : []),
    gauge('jobs', 'Jobs that the store has, by state.', depths(queues, listed, isExact ? JOB_STATES : COUNTED_STATES)),
    ...(isExact ? GAUGES.map((one) => gauge(one.name, one.help, joined(queues, listed, one.of, one.join))) : []),
    ...(workers === null ? [] : workerFamilies(queues, workers, listed)),
  ]
}

const gauge = (name: string, help: string, samples: readonly Sample[]): Family => {
  return { name: `millpond_${name}`, type: 'gauge', help, samples }
}

/** Of listed queues alone: where a queue leaves a sum, the sum falls, and falling counters mislead. */
function totals(queues: readonly QueueStats[]): Family[] {
  return Object.entries(TOTALS).map(([total, { name, help }]): Family => {
    const samples = queues.map(({ queue, totals }) => ({ labels: { queue }, value: totals[total as keyof Totals] }))
    return { name: `millpond_${name}_total`, type: 'counter', help, samples }
  })
}

function histograms(queues: readonly QueueStats[]): Family[] {
  return Object.entries(TIMES).map(([metric, { name, help }]): Family => {
    const samples = queues.flatMap(({ queue, histograms }) => {
      const buckets: Record<number, number> = {}
      for (const slice of histograms) if (slice.metric === metric) merge(buckets, slice.buckets)
      return histogramSeries({ queue }, buckets)
    })
    return { name: `millpond_${name}`, type: 'histogram', help, samples }
  })
}

const labelOf = (queue: string, listed: ReadonlySet<string>): string => (listed.has(queue) ? queue : OTHERS)

function depths(queues: readonly QueueStats[], listed: ReadonlySet<string>, states: readonly JobState[]): Sample[] {
  return states.flatMap((state) =>
    joined(queues, listed, ({ counts }) => counts[state]).map(({ labels, value }) => {
      return { labels: { ...labels, state }, value }
    }),
  )
}

/** A value per listed queue, and one for all others. */
function joined<Item extends { queue: string }>(
  items: readonly Item[],
  listed: ReadonlySet<string>,
  of: (item: Item) => number | null,
  join: (one: number, other: number) => number = (one, other) => one + other,
): Sample[] {
  const values = new Map<string, number>()
  for (const item of items) {
    const value = of(item)
    if (value === null) continue
    const queue = labelOf(item.queue, listed)
    const known = values.get(queue)
    values.set(queue, known === undefined ? value : join(known, value))
  }
  return [...values].map(([queue, value]) => ({ labels: { queue }, value }))
}

function workerFamilies(
  queues: readonly QueueStats[],
  workers: readonly WorkerRecord[],
  listed: ReadonlySet<string>,
): Family[] {
  const known = new Set(queues.map(({ queue }) => queue))
  const none = queues.map(({ queue }) => ({ queue, slots: 0, busy: 0, count: 0 }))
  // A worker may wait at a queue that does not exist yet. Its name is no label, as it has no place among the listed ones.
  const there = workers.filter(({ queue }) => known.has(queue)).map((worker) => ({ ...worker, count: 1 }))
  const all = [...none, ...there]
  return [
    gauge(
      'workers',
      'Workers that were heard of in the last minute.',
      joined(all, listed, ({ count }) => count),
    ),
    gauge(
      'worker_slots',
      'Jobs or batches that they run at once at most.',
      joined(all, listed, ({ slots }) => slots),
    ),
    gauge(
      'worker_slots_busy',
      'Those that they run now.',
      joined(all, listed, ({ busy }) => busy),
    ),
  ]
}
