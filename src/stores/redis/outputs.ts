/** What the scripts answer, as `contract/redis/` describes it under `Out:`. */
import type {
  ClaimedJob,
  Encoded,
  ExtendOutcome,
  FailOutcome,
  HistogramSlice,
  HoldOutcome,
  JobRecord,
  JobState,
  NewJob,
  PushOutcome,
  QueueStats,
} from '../../store.ts'
import { SHAPE } from './packer.ts'
import { Reader } from './reader.ts'

export interface PushReply {
  outcomes: PushOutcome[]
  /** The partition is. */
  listed: boolean
}

/** null: nothing was stored, since the partition is not listed. */
export function pushReply(reply: Buffer, jobs: readonly NewJob[]): PushReply | null {
  if (reply.length === 0) return { outcomes: jobs.map(({ id }) => ({ status: 'pushed', id })), listed: true }
  const reader = new Reader(reply)
  if (reader.nil()) return null
  const listed = reader.list() === jobs.length
  const outcomes = jobs.map(({ id }): PushOutcome => {
    const status = reader.numberOr()
    if (status === null) return { status: 'existing', id: reader.id() }
    return { status: status === 0 ? 'pushed' : 'full', id }
  })
  return { outcomes, listed }
}

interface Immutable {
  place: number
  pushedAt: number
  priority: number
  attempts: number
  key: string | null
  data: Encoded
  group: string | null
  timeout: number | null
  trace: string | null
}

/** The number nearest to another that ends with these two bytes. */
function nearest(time: number, bytes: number): number {
  const since = (bytes - (time % 65_536) + 98_304) % 65_536
  return time + since - 32_768
}

/** A record: contract/redis/common.lua tells its layout. */
function immutable(reader: Reader, end: number): Immutable {
  const time = reader.rawNumber(6)
  reader.skip(4)
  const shape = reader.rawNumber(1)
  const priority = shape & 15
  const place = reader.rawNumber((shape & SHAPE.wide) === 0 ? 4 : 6)
  const pushedAt = (shape & SHAPE.apart) === 0 ? nearest(time, reader.rawNumber(2)) : reader.rawNumber(6)
  const attempts = reader.number()
  const key = (shape & SHAPE.withKey) === 0 ? null : reader.text()
  const plain = (shape & SHAPE.plain) !== 0
  const values = plain ? 0 : reader.list()
  const data: Encoded = plain ? { encoding: 'json', body: reader.rawText(end) } : reader.encoded()
  if (values !== 5) return { place, pushedAt, priority, attempts, key, data, group: null, timeout: null, trace: null }
  const group = reader.textOrNull()
  const timeout = reader.numberOrNull()
  const trace = reader.textOrNull()
  return { place, pushedAt, priority, attempts, key, data, group, timeout, trace }
}

export interface ClaimReply {
  now: number
  /** Ask again: it stopped before it had seen all. */
  more: boolean
  jobs: ClaimedJob[]
}

export function claimReply(reply: Buffer): ClaimReply {
  const reader = new Reader(reply)
  const count = reader.list() - 2
  const now = reader.number()
  const more = reader.boolean()
  const jobs: ClaimedJob[] = []
  for (let i = 0; i < count; i++) {
    reader.list()
    const fence = reader.number()
    const attempt = reader.number()
    const due = reader.number()
    const end = reader.inside()
    const id = reader.namedId()
    const { attempts, priority, group, key, timeout, trace, pushedAt, data } = immutable(reader, end)
    const dueAt = due === 0 ? pushedAt : due
    jobs.push({ id, fence, attempt, attempts, priority, group, key, timeout, trace, pushedAt, dueAt, data })
  }
  return { now, more, jobs }
}

/** A list of small numbers, as what they stand for; nothing: the first for each. */
function outcomesOf<T>(reply: Buffer, count: number, meanings: readonly [T, ...T[]]): T[] {
  if (reply.length === 0) return Array.from({ length: count }, () => meanings[0])
  const reader = new Reader(reply)
  return Array.from({ length: reader.list() }, () => meanings[reader.number()] ?? meanings[0])
}

export const holdOutcomes = (reply: Buffer, count: number): HoldOutcome[] => outcomesOf(reply, count, ['ok', 'stale'])
export const failOutcomes = (reply: Buffer, count: number): FailOutcome[] =>
  outcomesOf(reply, count, ['retry', 'stale', 'dead'])
export const extendOutcomes = (reply: Buffer, count: number): ExtendOutcome[] =>
  outcomesOf(reply, count, ['ok', 'stale', 'cancelled'])

const CANCELLED = ['done', 'dead', 'cancelled', 'waited', 'ran'] as const
/** `waited` and `ran`: cancelled now. null: unknown. */
export type CancelOutcome = (typeof CANCELLED)[number] | null

export function cancelOutcomes(reply: Buffer): CancelOutcome[] {
  const reader = new Reader(reply)
  return Array.from({ length: reader.list() }, () => (reader.nil() ? null : (CANCELLED[reader.number()] ?? null)))
}

export interface SweepReply {
  /** There is something to do. */
  due: boolean
  next: number | null
  promoted: number
  expired: number
  /** No job is left, and all settings are the default. */
  idle: boolean
  lost: { id: string; attempt: number; state: 'waiting' | 'dead' }[]
}

export function sweepReply(reply: Buffer): SweepReply {
  const reader = new Reader(reply)
  const count = reader.list() - 5
  const due = reader.boolean()
  const next = reader.numberOrNull()
  const promoted = reader.number()
  const expired = reader.number()
  const idle = reader.boolean()
  const lost = Array.from({ length: count }, () => {
    reader.list()
    return {
      id: reader.id(),
      attempt: reader.number(),
      state: reader.boolean() ? ('dead' as const) : ('waiting' as const),
    }
  })
  return { due, next, promoted, expired, idle, lost }
}

export const LETTERS: Readonly<Record<JobState, string>> = {
  scheduled: 's',
  waiting: 'w',
  running: 'r',
  done: 'd',
  dead: 'x',
  cancelled: 'c',
}
const STATES: ReadonlyMap<string, JobState> = new Map([
  ['s', 'scheduled'],
  ['w', 'waiting'],
  ['r', 'running'],
  ['d', 'done'],
  ['x', 'dead'],
  ['c', 'cancelled'],
])

/** A job as one partition knows it. */
export interface Found {
  record: JobRecord
  place: number
  /** What its state is ordered by: when it was pushed (waiting), is due (scheduled), loses its lease (running) or finished. */
  time: number
}

const zeroToNull = (time: number): number | null => (time === 0 ? null : time)

function found(reader: Reader, queue: string): Found {
  reader.list()
  const id = reader.id()
  const letter = reader.text()
  const state = STATES.get(letter)
  if (state === undefined) throw new TypeError(`millpond: "${letter}" is no state of a job`)
  const attempt = reader.number()
  const due = reader.number()
  const startedAt = zeroToNull(reader.number())
  const finished = reader.number()
  const worker = reader.worker()
  const progress = packedOrNull(reader)
  const error = reader.error()
  const result = packedOrNull(reader)
  const { place, pushedAt, ...rest } = immutable(reader, reader.inside())
  const dueAt = due === 0 ? pushedAt : due
  const finishedAt = state === 'running' ? null : zeroToNull(finished)
  const record = {
    id,
    queue,
    state,
    attempt,
    pushedAt,
    dueAt,
    startedAt,
    finishedAt,
    worker,
    progress,
    error,
    result,
    ...rest,
  }
  const time = state === 'waiting' ? pushedAt : state === 'scheduled' ? dueAt : finished
  return { record, place, time }
}

function packedOrNull(reader: Reader): Encoded | null {
  if (reader.nil()) return null
  reader.list()
  return reader.encoded()
}

export function foundReply(reply: Buffer, queue: string): (Found | null)[] {
  const reader = new Reader(reply)
  return Array.from({ length: reader.list() }, () => (reader.nil() ? null : found(reader, queue)))
}

/** As many minutes as were asked for, of one partition. */
export function statsReply(reply: Buffer, queue: string): QueueStats {
  const reader = new Reader(reply)
  const minutes = reader.list() - 9
  const paused = reader.boolean()
  const capacity = reader.numberOrNull()
  const counts: Record<JobState, number> = {
    scheduled: reader.number(),
    waiting: reader.number(),
    running: reader.number(),
    done: reader.number(),
    dead: reader.number(),
    cancelled: reader.number(),
  }
  const oldestWaiting = reader.numberOrNull()
  const histograms: HistogramSlice[] = []
  for (let minute = 0; minute < minutes; minute++) {
    const values = reader.list()
    reader.number()
    for (let i = 1; i < values; i += 4) {
      const priority = reader.number()
      const metric = reader.number() === 0 ? 'wait' : 'run'
      const bucket = reader.number()
      addCount(histograms, { queue, priority, metric, buckets: { [bucket]: reader.number() } })
    }
  }
  return { queue, paused, capacity, counts, oldestWaiting, histograms }
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
