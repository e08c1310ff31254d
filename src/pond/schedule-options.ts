/** The options of `pond.schedule`, checked. */

import { MillpondError } from '../values/errors/errors.ts'
import { checkOptions, isBoolean, type Rules } from '../values/options/options.ts'
import type { Timing } from '../values/schedules/records.ts'
import { MISSED, type Missed } from '../values/schedules/records.ts'
import { timesOf } from '../values/schedules/times.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { type PushOptions, timeOf } from './push/options.ts'

/** What each job of a schedule is pushed with. */
type JobOptions = Pick<PushOptions, 'priority' | 'key' | 'group' | 'cost' | 'attempts' | 'timeout'>

export interface ScheduleOptions extends JobOptions {
  /** The IANA time zone of a cron line, `UTC` unless set. */
  tz?: string | undefined
  /**
   * What happens with times at which no process with workers ran: `once`, one job for the last of them; `skip`, none, unless it was
   * less than a minute ago; `all`, a job for each, the last 1,000 at most. `once` unless set.
   */
  missed?: Missed | undefined
  /** Each job is due up to so much later, spread by the schedule's name and the time; 0 to 100 years, 0 unless set. */
  jitter?: Duration | undefined
  /** The first moment at which it may fire: a Date, or milliseconds since 1970. Intervals are counted from here. */
  from?: Date | number | undefined
  /** The last moment at which it may fire. */
  until?: Date | number | undefined
  /** Make it paused. Counts only when the schedule is made; later, `pause` and `resume` do. */
  paused?: boolean | undefined
}

const isTime = (value: unknown): boolean | string =>
  timeOf(value) !== undefined || 'a valid Date, or milliseconds since 1970'
const isZone = (value: unknown): boolean | string => typeof value === 'string' || "a time zone such as 'Europe/Paris'"
/** Checked by the push itself. */
const isAny = (): boolean => true

const RULES: Rules<ScheduleOptions> = {
  tz: isZone,
  missed: (value) => MISSED.some((known) => known === value) || MISSED.join(', '),
  jitter: (value) => milliseconds(value, 'jitter') >= 0,
  from: isTime,
  until: isTime,
  paused: isBoolean,
  ...{ priority: isAny, key: isAny, group: isAny, cost: isAny, attempts: isAny, timeout: isAny },
}

/** @throws InvalidOption */
export function scheduleSettings(
  name: string,
  when: unknown,
  options: ScheduleOptions | undefined,
): { timing: Timing; paused: boolean; job: JobOptions } {
  const { tz, missed, jitter, from, until, paused, ...job } = checkOptions(options, RULES, `schedule ${name}`)
  const timing: Timing = {
    when: checkLine(when),
    tz: tz ?? 'UTC',
    missed: missed ?? 'once',
    jitter: jitter === undefined ? 0 : milliseconds(jitter, 'jitter'),
    from: from === undefined ? null : (timeOf(from) ?? null),
    until: until === undefined ? null : (timeOf(until) ?? null),
  }
  timesOf(timing)
  return { timing, paused: paused ?? false, job }
}

/** @throws InvalidOption */
export function checkLine(when: unknown): string {
  const line = typeof when === 'string' ? when.trim() : ''
  if (line !== '' && line.length <= 255) return line
  throw new MillpondError('InvalidOption', "a schedule is a cron line such as '0 7 * * *', '@daily', or 'every 90s'")
}
