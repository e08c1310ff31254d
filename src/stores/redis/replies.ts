/** What the scripts answer, as `contract/redis/` describes it under `Out:`. */
import type { ClaimedJob, FinalState, HistogramSlice, JobRecord, JobState, QueueStats } from '../../store.ts'
import { JOB_STATES } from '../../store.ts'
import { idText } from './ids.ts'
import { bytesIn, encodedIn, errorIn, listBefore, numberIn, recordIn, textIn, unexpected } from './wire.ts'

export interface ClaimReply {
  now: number
  lease: number
  retryAfter: number | null
  /** Ask again: it stopped before it had seen all. */
  more: boolean
  /** It came too late, and did nothing. */
  late: boolean
  /** Whether the queue was ever configured. */
  known: boolean
  jobs: ClaimedJob[]
}

const CLAIM_HEAD = 5
const CLAIM_ITEMS = 5

const timeOrNull = (value: unknown): number | null => {
  const number = numberIn(value)
  return number < 0 ? null : number
}

export function claimReply(reply: readonly unknown[]): ClaimReply {
  const [now, lease, retryAfter, more, known] = reply
  const jobs: ClaimedJob[] = []
  for (let at = CLAIM_HEAD; at < reply.length; at += CLAIM_ITEMS) {
    const due = numberIn(reply[at + 3])
    const { place: _, ...kept } = recordIn(bytesIn(reply[at + 4]))
    jobs.push({
      id: idText(bytesIn(reply[at])),
      fence: numberIn(reply[at + 1]),
      attempt: numberIn(reply[at + 2]),
      dueAt: due === 0 ? kept.pushedAt : due,
      ...kept,
    })
  }
  return {
    now: numberIn(now),
    lease: numberIn(lease),
    retryAfter: timeOrNull(retryAfter),
    more: more === 1,
    late: more === 2,
    known: known === 1,
    jobs,
  }
}

const CANCELLED = ['done', 'dead', 'cancelled', 'waited', 'ran'] as const
/** `waited` and `ran`: cancelled now. null: unknown. */
export type CancelOutcome = FinalState | 'waited' | 'ran' | null

export const cancelOutcomes = (reply: readonly unknown[]): CancelOutcome[] =>
  reply.map((code) => CANCELLED[numberIn(code)] ?? null)

export interface SweepReply {
  promoted: number
  expired: number
  /** For so long that it can be removed. */
  idle: boolean
  lost: { id: string; attempt: number; state: 'waiting' | 'dead' }[]
}

export function sweepReply([promoted, expired, idle, ...items]: readonly unknown[]): SweepReply {
  const lost: SweepReply['lost'] = []
  for (let at = 0; at < items.length; at += 3) {
    const state = items[at + 2] === 1 ? 'dead' : 'waiting'
    lost.push({ id: idText(bytesIn(items[at])), attempt: numberIn(items[at + 1]), state })
  }
  return { promoted: numberIn(promoted), expired: numberIn(expired), idle: idle === 1, lost }
}

/** A job as one partition knows it. */
export interface Found {
  record: JobRecord
  place: number
  /** What its state is ordered by: when it was pushed (waiting), is due (scheduled), loses its lease (running) or finished. */
  time: number
}

const FOUND_ITEMS = 11
const zeroToNull = (time: number): number | null => (time === 0 ? null : time)

function stateIn(value: unknown): JobState {
  const text = textIn(value)
  const state = JOB_STATES.find((known) => known === text)
  if (state === undefined) throw unexpected(value, 'a state')
  return state
}

/** Of those that are known. */
export function foundReply(reply: readonly unknown[], queue: string): Found[] {
  const jobs: Found[] = []
  for (let at = 0; at < reply.length; at += FOUND_ITEMS) jobs.push(found(reply.slice(at, at + FOUND_ITEMS), queue))
  return jobs
}

function found(items: readonly unknown[], queue: string): Found {
  const [id, stateText, attempt, due, started, finished, worker, progress, error, result, kept] = items
  const state = stateIn(stateText)
  const { place, ...rest } = recordIn(bytesIn(kept))
  const dueAt = numberIn(due) === 0 ? rest.pushedAt : numberIn(due)
  const ended = numberIn(finished)
  const record: JobRecord = {
    id: idText(bytesIn(id)),
    queue,
    state,
    attempt: numberIn(attempt),
    dueAt,
    startedAt: zeroToNull(numberIn(started)),
    finishedAt: state === 'running' ? null : zeroToNull(ended),
    worker: worker === null ? null : textIn(worker),
    progress: progress === null ? null : encodedIn(bytesIn(progress)),
    error: error === null ? null : errorIn(bytesIn(error)),
    result: result === null ? null : encodedIn(bytesIn(result)),
    ...rest,
  }
  const time = state === 'waiting' ? rest.pushedAt : state === 'scheduled' ? dueAt : ended
  return { record, place, time }
}

/** As many minutes as were asked for, of one partition. */
export function statsReply(reply: readonly unknown[], queue: string): QueueStats {
  const [paused, capacity, scheduled, waiting, running, done, dead, cancelled, oldest, ...minutes] = reply
  const histograms: HistogramSlice[] = []
  for (const minute of minutes) {
    const values = listBefore(bytesIn(minute)).list.map(numberIn)
    for (let at = 1; at + 3 < values.length; at += 4) {
      const [priority = 0, metric, bucket = 0, count = 0] = values.slice(at, at + 4)
      addCount(histograms, { queue, priority, metric: metric === 0 ? 'wait' : 'run', buckets: { [bucket]: count } })
    }
  }
  return {
    queue,
    paused: paused === 1,
    capacity: timeOrNull(capacity),
    counts: {
      scheduled: numberIn(scheduled),
      waiting: numberIn(waiting),
      running: numberIn(running),
      done: numberIn(done),
      dead: numberIn(dead),
      cancelled: numberIn(cancelled),
    },
    oldestWaiting: timeOrNull(oldest),
    histograms,
  }
}

/** Into the slice of the same priority and metric. */
export function addCount(slices: HistogramSlice[], slice: HistogramSlice): void {
  const known = slices.find(({ priority, metric }) => priority === slice.priority && metric === slice.metric)
  if (known === undefined) {
    slices.push({ ...slice, buckets: { ...slice.buckets } })
    return
  }
  for (const [bucket, count] of Object.entries(slice.buckets)) {
    known.buckets[Number(bucket)] = (known.buckets[Number(bucket)] ?? 0) + count
  }
}
