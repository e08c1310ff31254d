/** The one argument of each script, as `contract/redis/` describes it under `In:`. */
import type {
  ClaimRequest,
  Completion,
  Encoded,
  Extension,
  Failure,
  HistogramSlice,
  Hold,
  NewJob,
  QueueSettings,
} from '../../store.ts'
import { Packer, SHAPE } from './packer.ts'
import type { Partition } from './partition.ts'

/** One for all: a message is written in one go, and then taken. */
const packer = new Packer()

export interface Input {
  bytes: Buffer
  /** Where `again` stands; 0: nowhere. */
  againAt: number
}

/** [now, bell, …: `count` values in all. */
function begin(count: number, now: number | null, { bell }: Partition): void {
  packer.list(count)
  packer.number(now)
  packer.raw(bell)
}

/** Any other one. @param rest writes what follows [now, bell */
export function begun(now: number | null, partition: Partition, count: number, rest: (packer: Packer) => void): Input {
  begin(count, now, partition)
  rest(packer)
  return taken()
}

const taken = (againAt = 0): Input => ({ bytes: packer.take(), againAt })

/** [now, bell, again, items: what every ending is. */
function beginEnding(now: number | null, partition: Partition, again: boolean, items: number): number {
  begin(4, now, partition)
  const againAt = packer.length
  packer.boolean(again)
  packer.list(items)
  return againAt
}

function optional(encoded: Encoded | null): void {
  if (encoded === null) packer.boolean(false)
  else {
    packer.nested(() => {
      packer.list(2)
      packer.encoded(encoded)
    })
  }
}

function textOrNil(text: string | null): void {
  if (text === null) packer.nil()
  else packer.text(text)
}

const isBare = ({ group, timeout, trace }: NewJob): boolean => group === null && timeout === null && trace === null

function shapeOf(job: NewJob): number {
  const plain = isBare(job) && typeof job.data.body === 'string'
  return job.priority + (job.key === null ? 0 : SHAPE.withKey) + (plain ? SHAPE.plain : 0)
}

/** What follows pushedAt in a job's record. */
function rest(job: NewJob): void {
  const { attempts, key, group, timeout, trace, data } = job
  packer.number(attempts)
  if (key !== null) packer.text(key)
  const bare = isBare(job)
  if (bare && typeof data.body === 'string') {
    packer.rawText(data.body)
    return
  }
  packer.list(bare ? 2 : 5)
  packer.encoded(data)
  if (bare) return
  textOrNil(group)
  if (timeout === null) packer.nil()
  else packer.number(timeout)
  textOrNil(trace)
}

/** Added to the priority of a job with extras. */
const EXTRA = 16
const isSpecial = ({ key, delay, runAt }: NewJob): boolean => key !== null || delay !== 0 || runAt !== null

export function pushInput(now: number | null, partition: Partition, jobs: readonly NewJob[]): Input {
  begin(7, now, partition)
  const times = packer.later(2)
  let least = Number.POSITIVE_INFINITY
  let most = 0
  let specials = 0
  packer.list(jobs.length * 4)
  for (const job of jobs) {
    const { id, priority } = job
    const time = packer.nameAndStart(id, shapeOf(job))
    least = Math.min(least, time)
    most = Math.max(most, time)
    packer.nested(() => rest(job))
    const special = isSpecial(job)
    if (special) specials++
    packer.number(special ? priority + EXTRA : priority)
  }
  packer.fill(times, [least, most])
  packer.list(specials * 3)
  for (const job of specials === 0 ? [] : jobs) {
    if (!isSpecial(job)) continue
    if (job.key === null) packer.boolean(false)
    else packer.text(job.key)
    packer.number(job.delay)
    packer.number(job.runAt)
  }
  packer.number(partition.floor)
  return taken()
}

/**
 * @param call a number that no other claim of the worker has
 * @param run which process of the server this goes to; null: not known
 */
export function claimInput(
  now: number | null,
  partition: Partition,
  { limit, lease, worker, quiet }: Omit<ClaimRequest, 'queue'>,
  call: number,
  run: string | null,
): Input {
  begin(9, now, partition)
  const againAt = packer.length
  packer.boolean(false)
  packer.number(limit)
  packer.number(lease)
  packer.nested(() => packer.worker(worker))
  packer.fourBytes(call)
  if (run === null) packer.boolean(false)
  else packer.text(run)
  packer.boolean(quiet === true)
  return taken(againAt)
}

export function completeInput(
  now: number | null,
  partition: Partition,
  again: boolean,
  completions: readonly Completion[],
): Input {
  begin(6, now, partition)
  const againAt = packer.length
  packer.boolean(again)
  packer.list(completions.length)
  for (const { id } of completions) packer.id(id)
  const fence = completions[0]?.fence ?? 0
  if (completions.every((one) => one.fence === fence)) packer.number(fence)
  else {
    packer.list(completions.length)
    for (const one of completions) packer.number(one.fence)
  }
  if (completions.every(({ result }) => result === null)) packer.boolean(false)
  else {
    packer.list(completions.length)
    for (const { result } of completions) optional(result)
  }
  return taken(againAt)
}

export function failInput(
  now: number | null,
  partition: Partition,
  again: boolean,
  failures: readonly Failure[],
): Input {
  const againAt = beginEnding(now, partition, again, failures.length * 4)
  for (const { id, fence, error, delay } of failures) {
    packer.id(id)
    packer.number(fence)
    packer.nested(() => packer.error(error))
    packer.number(delay)
  }
  return taken(againAt)
}

export function releaseInput(now: number | null, partition: Partition, again: boolean, holds: readonly Hold[]): Input {
  const againAt = beginEnding(now, partition, again, holds.length * 2)
  for (const { id, fence } of holds) {
    packer.id(id)
    packer.number(fence)
  }
  return taken(againAt)
}

export function extendInput(
  now: number | null,
  partition: Partition,
  lease: number,
  extensions: readonly Extension[],
): Input {
  begin(4, now, partition)
  packer.number(lease)
  packer.list(extensions.length * 3)
  for (const { id, fence, progress } of extensions) {
    packer.id(id)
    packer.number(fence)
    optional(progress)
  }
  return taken()
}

/** For cancel and find. */
export function idsInput(now: number | null, partition: Partition, ids: readonly string[]): Input {
  begin(3, now, partition)
  packer.list(ids.length)
  for (const id of ids) packer.id(id)
  return taken()
}

/** @param ids null: dead ones of the queue, up to the limit */
export function requeueInput(
  now: number | null,
  partition: Partition,
  ids: readonly string[] | null,
  limit: number,
): Input {
  begin(4, now, partition)
  if (ids === null) packer.boolean(false)
  else {
    packer.list(ids.length)
    for (const id of ids) packer.id(id)
  }
  packer.number(limit)
  return taken()
}

export interface SweepLimits {
  promote: number
  lose: number
  expire: number
}

export function sweepInput(now: number | null, partition: Partition, { promote, lose, expire }: SweepLimits): Input {
  begin(5, now, partition)
  packer.number(promote)
  packer.number(lose)
  packer.number(expire)
  return taken()
}

export function statsInput(now: number | null, partition: Partition, minutes: number): Input {
  begin(3, now, partition)
  packer.number(minutes)
  return taken()
}

export function recordInput(now: number | null, partition: Partition, slices: readonly HistogramSlice[]): Input {
  begin(3, now, partition)
  const items = slices.flatMap(({ priority, metric, buckets }) =>
    Object.entries(buckets).flatMap(([bucket, count]) => [priority, metric === 'wait' ? 0 : 1, Number(bucket), count]),
  )
  packer.list(items.length)
  for (const item of items) packer.number(item)
  return taken()
}

export function configureInput(
  now: number | null,
  partition: Partition,
  settings: Omit<QueueSettings, 'queue'>,
): Input {
  begin(3, now, partition)
  const given = Object.entries(settings).filter(([, value]) => value !== undefined)
  packer.list(given.length * 2)
  for (const [name, value] of given) {
    packer.text(name)
    if (typeof value === 'boolean') packer.boolean(value)
    else packer.number(value)
  }
  return taken()
}

/** Where a page begins: after this job, or after this time in a partition that does not hold it. */
export interface Cursor {
  /** null: the job is in another partition. */
  own: { id: string; place: number } | null
  priority: number
  time: number
  /** Jobs of that very time are still to come. */
  ties: boolean
}

export function listInput(
  now: number | null,
  partition: Partition,
  letter: string,
  limit: number,
  cursor: Cursor | null,
): Input {
  begin(5, now, partition)
  packer.text(letter)
  packer.number(limit)
  if (cursor === null) packer.boolean(false)
  else {
    packer.list(5)
    if (cursor.own === null) packer.boolean(false)
    else packer.id(cursor.own.id)
    packer.number(cursor.priority)
    packer.number(cursor.own?.place ?? null)
    packer.number(cursor.time)
    packer.boolean(cursor.ties)
  }
  return taken()
}
