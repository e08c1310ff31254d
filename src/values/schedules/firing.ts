/** What a sweep that meets a due schedule makes of it: pinned by `contract/vectors/schedules.json`. */
import { createHash } from 'node:crypto'
import type { NewJob } from '../jobs/records.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import type { Firing, ScheduleRecord, Times, Timing } from './records.ts'
import { timesOf } from './times.ts'

/** Within `onTime` milliseconds a time is not missed. Of `missed: 'all'`: how many times at most, and how many of them in one commit. */
const { onTime: ON_TIME, missed: MOST_MISSED, atOnce: AT_ONCE } = DEFAULTS.schedule

/** What is fired, and the time to go on with. @param now by the store's clock */
export function firingTimes(
  timing: Timing,
  expected: number,
  now: number,
  times: Times = timesOf(timing),
): { times: number[]; next: number | null } {
  const passed = timing.missed === 'all' ? allPassed(times, expected, now) : times.before(now + 1, 1)
  // A changed line, or other rules of the zone: the time that was stored is fired all the same.
  const later = passed.filter((time) => time > expected)
  const due = timing.missed === 'all' ? [expected, ...later].slice(-MOST_MISSED) : [later.at(-1) ?? expected]
  if (timing.missed === 'skip') return { times: due.filter((time) => time > now - ON_TIME), next: times.after(now) }
  const fired = due.slice(0, AT_ONCE)
  return { times: fired, next: fired.length < due.length ? (due[AT_ONCE] ?? null) : times.after(now) }
}

/** The times from `expected` to `now`, the last ones if they are too many. Looking back is dear, and mostly one time has passed. */
function allPassed(times: Times, expected: number, now: number): number[] {
  const passed: number[] = []
  for (let at = times.after(expected - 1); at !== null && at <= now; at = times.after(at)) {
    if (passed.push(at) > MOST_MISSED) return times.before(now + 1, MOST_MISSED)
  }
  return passed
}

/** @throws InvalidOption: another version or language wrote a line that this one cannot read */
export function firingOf(record: ScheduleRecord, now: number): Firing {
  const { name, version, nextAt, jitter, job } = record
  const expected = nextAt ?? now
  if (!record.planned) return { name, version, expected, next: timesOf(record).after(expected), jobs: [] }
  const { times, next } = firingTimes(record, expected, now)
  const jobs = times.map((time): NewJob => {
    const { id, delay } = firingId(name, time, jitter)
    return { ...job, id, delay: 0, runAt: time + delay, trace: null }
  })
  return { name, version, expected, next, jobs }
}

/** The first half of its jobs, for which there may be room; the others are left for the next sweep. undefined: it has one job. */
export function firstHalf({ jobs, ...firing }: Firing): Firing | undefined {
  const some = jobs.slice(0, Math.floor(jobs.length / 2))
  const left = jobs[some.length]
  return left === undefined || some.length === 0 ? undefined : { ...firing, jobs: some, next: timeOfId(left.id) }
}

const timeOfId = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/**
 * The id of the job that a schedule pushes for a time: a UUIDv7 of that time, whose other bits are the SHA-256 of the time, a colon and the
 * name. So one firing has one job, whatever retries. The next 32 bits of the hash say which part of `jitter` the job is delayed by.
 */
export function firingId(name: string, time: number, jitter = 0): { id: string; delay: number } {
  const hash = createHash('sha256').update(`${time}:${name}`).digest()
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(time, 0, 6)
  hash.copy(bytes, 6, 0, 10)
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f)
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f)
  const hex = bytes.toString('hex')
  const id = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  return { id, delay: Math.floor((hash.readUInt32BE(10) / 2 ** 32) * jitter) }
}

/** Of everything that is declared, but `paused` and the next time. */
export function versionOf({ when, tz, missed, jitter, from, until }: Timing, job: ScheduleRecord['job']): string {
  const { queue, priority, key, group, cost, attempts, timeout, data } = job
  const parts = [
    when,
    tz,
    missed,
    jitter,
    from,
    until,
    queue,
    priority,
    key,
    group,
    cost,
    attempts,
    timeout,
    data.encoding,
  ]
  return createHash('sha256').update(JSON.stringify(parts)).update(data.body).digest('hex').slice(0, 32)
}
