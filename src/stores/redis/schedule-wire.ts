/** Schedules and firings as Redis keeps them: contract/redis/scheduled.lua, and README.md under "Schedules". */
import type { NewJob } from '../../values/jobs/records.ts'
import type { ScheduleRecord } from '../../values/schedules/records.ts'
import { MISSED, type ScheduledJob } from '../../values/schedules/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import {
  bytesIn,
  encodedBytes,
  encodedIn,
  idBytes,
  idText,
  listBefore,
  numberIn,
  numberOrNull,
  pack,
  textOrNull,
  unexpected,
  unpack,
} from './wire.ts'

const STILL_DECLARED = DEFAULTS.schedule.declared

export function scheduledBytes({ queue, priority, key, group, cost, attempts, timeout, data }: ScheduledJob): Buffer {
  return Buffer.concat([pack([queue, priority, key, group, cost, attempts, timeout]), Buffer.from(encodedBytes(data))])
}

function scheduledIn(bytes: Buffer): ScheduledJob {
  const { list, end } = listBefore(bytes)
  const [queue, priority, key, group, cost, attempts, timeout] = list
  return {
    ...{ queue: textOf(queue), priority: numberIn(priority), key: textOrNull(key), group: textOrNull(group) },
    ...{ cost: numberIn(cost), attempts: numberOrNull(attempts), timeout: numberOrNull(timeout) },
    data: encodedIn(bytes, end),
  }
}

export function scheduleIn(name: string, bytes: Buffer, now: number): ScheduleRecord {
  const { list, end } = listBefore(bytes)
  const [version, when, tz, missed, jitter, from, until, paused, planned, nextAt, changedAt, seenAt, lastAt] = list
  return {
    ...{ name, version: textOf(version), when: textOf(when), tz: textOf(tz), jitter: numberIn(jitter) },
    missed: MISSED.find((known) => known === missed) ?? 'once',
    ...{ from: numberOrNull(from), until: numberOrNull(until), paused: paused === true, planned: planned === true },
    ...{ nextAt: numberOrNull(nextAt), changedAt: numberIn(changedAt), lastAt: numberOrNull(lastAt) },
    declared: numberIn(seenAt) + STILL_DECLARED > now,
    job: scheduledIn(bytes.subarray(end)),
  }
}

/** Jobs of one firing mostly have the same data, which are sent once: [data, jobs], each job with the place of its data, from 0. */
export function firingBytes(jobs: readonly NewJob[]): Buffer {
  const data = [...new Set(jobs.map((job) => job.data))]
  const lists = jobs.map((job) => {
    const { id, queue, priority, delay, runAt, attempts, timeout, group, key, trace, cost = 1 } = job
    const place = data.indexOf(job.data)
    return [idBytes(id), queue, priority, delay, runAt, attempts, timeout, group, key, trace, cost, place]
  })
  return pack([data.map((each) => Buffer.from(encodedBytes(each))), lists])
}

/** Of a firing as the hash has it. */
export function firingIn(bytes: Buffer): NewJob[] {
  const content = unpack(bytes.subarray(listBefore(bytes).end))
  if (!Array.isArray(content)) throw unexpected(content, 'a list')
  const [data, jobs] = content
  if (!Array.isArray(data) || !Array.isArray(jobs)) throw unexpected(data, 'lists')
  return jobs.map((job: readonly unknown[]) => {
    const [id, queue, priority, delay, runAt, attempts, timeout, group, key, trace, cost, place] = job
    return {
      ...{ id: idText(bytesIn(id)), queue: textOf(queue), priority: numberIn(priority), delay: numberIn(delay) },
      ...{ runAt: numberOrNull(runAt), attempts: numberOrNull(attempts), timeout: numberOrNull(timeout) },
      ...{ group: textOrNull(group), key: textOrNull(key), trace: textOrNull(trace), cost: numberIn(cost) },
      data: encodedIn(bytesIn(data[numberIn(place)])),
    }
  })
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  throw unexpected(value, 'a text')
}
