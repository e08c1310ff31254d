/** Schedules as Redis keeps them: contract/redis/scheduled.lua. */
import type { ScheduleRecord } from '../../values/schedules/records.ts'
import { MISSED, type ScheduledJob } from '../../values/schedules/records.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { encodedBytes, encodedIn, listBefore, numberIn, numberOrNull, pack, textOrNull, unexpected } from './wire.ts'

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

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  throw unexpected(value, 'a text')
}
