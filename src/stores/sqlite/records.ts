/** What people look at: records, lists and statistics. Nothing here writes. */
import {
  type HistogramSlice,
  JOB_STATES,
  type JobRecord,
  type JobState,
  type ListRequest,
  type Metric,
  type QueueStats,
} from '../../store.ts'
import { keptError } from '../kept-error.ts'
import { encodedFrom } from './flat.ts'
import type { Statements } from './statements.ts'
import { integer, integerOrNull, type Row, text, textOrNull } from './values.ts'

export function stateFrom(value: unknown): JobState {
  const state = JOB_STATES.find((known) => known === value)
  if (state === undefined) throw new TypeError(`millpond: ${String(value)} is no state of a job`)
  return state
}

function metricFrom(value: unknown): Metric {
  if (value === 'wait' || value === 'run') return value
  throw new TypeError(`millpond: ${String(value)} is no metric`)
}

function recordFrom(row: Row): JobRecord {
  return {
    id: text(row.id),
    queue: text(row.queue),
    state: stateFrom(row.state),
    priority: integer(row.priority),
    attempt: integer(row.attempt),
    attempts: integer(row.attempts),
    key: textOrNull(row.key),
    group: textOrNull(row.group),
    timeout: integerOrNull(row.timeout),
    trace: textOrNull(row.trace),
    pushedAt: integer(row.pushed_at),
    dueAt: integer(row.due_at),
    startedAt: integerOrNull(row.started_at),
    finishedAt: integerOrNull(row.finished_at),
    worker: textOrNull(row.worker),
    data: encodedFrom(row.encoding, row.data),
    progress: row.progress_encoding === null ? null : encodedFrom(row.progress_encoding, row.progress),
    result: row.result_encoding === null ? null : encodedFrom(row.result_encoding, row.result),
    error: row.error === null ? null : keptError(row.error),
  }
}

export function find(statements: Statements, ids: readonly string[]): (JobRecord | null)[] {
  const statement = statements.get('find/find')
  return ids.map((id) => {
    const row = statement.get({ id })
    return row === undefined ? null : recordFrom(row)
  })
}

/** Before every job in ascending order; its negative is after every one, for the newest first. */
const FIRST = -Number.MAX_SAFE_INTEGER

export function list(statements: Statements, { queue, state, limit, after }: ListRequest): JobRecord[] {
  const first = { seq: FIRST, priority: -FIRST, due_at: FIRST, lease_until: FIRST, finished_at: -FIRST }
  const cursor: Row | undefined =
    after === undefined ? first : statements.get('list/cursor').get({ id: after, queue, state })
  if (cursor === undefined) return []
  const page = { queue, limit, seq: integer(cursor.seq) }
  const at = (column: keyof typeof first): number => integer(cursor[column])
  const rows = (): Row[] => {
    switch (state) {
      case 'waiting':
        return statements.get('list/waiting').all({ ...page, priority: at('priority') })
      case 'scheduled':
        return statements.get('list/scheduled').all({ ...page, due_at: at('due_at') })
      case 'running':
        return statements.get('list/running').all({ ...page, lease_until: at('lease_until') })
      default:
        return statements.get('list/final').all({ ...page, state, finished_at: at('finished_at') })
    }
  }
  return rows().map(recordFrom)
}

export function stats(
  statements: Statements,
  { queue, minutes = 0 }: { queue?: string; minutes?: number },
  now: number,
): QueueStats[] {
  const only = { queue: queue ?? null }
  const slices = minutes > 0 ? histograms(statements, only, Math.floor(now / 60_000) - minutes + 1) : []
  const counts = countsOf(statements, only)
  return statements
    .get('stats/queues')
    .all(only)
    .map((row) => {
      const name = text(row.name)
      const own = counts.get(name) ?? noJobs()
      return {
        queue: name,
        paused: integer(row.paused) !== 0,
        capacity: integerOrNull(row.capacity),
        counts: own,
        oldestWaiting: own.waiting === 0 ? null : oldest(statements, name, now),
        histograms: slices.filter((slice) => slice.queue === name),
      }
    })
}

const noJobs = (): QueueStats['counts'] => ({ scheduled: 0, waiting: 0, running: 0, done: 0, dead: 0, cancelled: 0 })

function countsOf(statements: Statements, only: { queue: string | null }): Map<string, QueueStats['counts']> {
  const all = new Map<string, QueueStats['counts']>()
  for (const row of statements.get('stats/counts').all(only)) {
    const queue = text(row.queue)
    const counts = all.get(queue) ?? noJobs()
    all.set(queue, counts)
    counts[stateFrom(row.state)] = integer(row.count)
  }
  return all
}

const PRIORITIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

function oldest(statements: Statements, queue: string, now: number): number | null {
  let earliest: number | null = null
  for (const priority of PRIORITIES) {
    const due = integerOrNull(statements.get('stats/oldest').get({ queue, priority })?.due_at ?? null)
    if (due !== null && (earliest === null || due < earliest)) earliest = due
  }
  return earliest === null ? null : now - earliest
}

function histograms(statements: Statements, only: { queue: string | null }, minute: number): HistogramSlice[] {
  const slices: HistogramSlice[] = []
  let slice: HistogramSlice | undefined
  for (const row of statements.get('stats/histograms').all({ ...only, minute })) {
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
