/** What requests on schedules take and answers hold. */

import { DECLARE_OUTCOMES, MISSED } from '../values/schedules/records.ts'
import { DEFAULTS } from '../values/settings/contract-defaults.ts'
import { MAX_COST } from '../values/settings/rate.ts'
import { LONGEST_TIMER } from '../values/time/duration.ts'
import {
  anInteger,
  anything,
  attempts,
  boolean,
  described,
  duration,
  id,
  name,
  nullable,
  queueName,
  reply,
  request,
  runAt,
  text,
  time,
} from './api-schemas.ts'
import { array, integer, oneOf, string } from './json-schema.ts'

const LINE =
  'A cron line of 5 or 6 fields, a name such as `@daily`, or `every` and a duration from 1 s, such as `every 90s`.'
const when = string({ minLength: 1, maxLength: 255, description: LINE, examples: ['0 7 * * 1-5'] })
const tz = string({ maxLength: 100, default: 'UTC', description: 'The IANA time zone of a cron line.' })
const moment = (description: string) =>
  described(runAt, `${description}: a time in RFC 3339, or milliseconds since 1970`)

export const scheduleName = string({
  pattern: queueName.pattern ?? '',
  description: 'The name of a schedule. Percent-encode a slash in it.',
})

export const newSchedule = request(
  'NewSchedule',
  { name: scheduleName, when, queue: queueName, data: anything },
  {
    tz,
    missed: oneOf(MISSED, {
      default: 'once',
      description:
        'What happens with times at which nobody could fire it: one job for the last of them; none; a job for each.',
    }),
    jitter: duration('Each job is due up to so much later', 0, DEFAULTS.bounds.delay.most),
    from: moment('The first moment at which it may fire'),
    until: moment('The last moment at which it may fire'),
    paused: described(boolean, 'Make it paused. Counts only when the schedule is made.'),
    priority: integer(0, 9, { default: 4, description: 'Of its jobs.' }),
    key: name('Of its jobs: at most one live job of the queue has it.'),
    group: name('Of its jobs.'),
    cost: integer(1, MAX_COST, { default: 1, description: 'Of its jobs.' }),
    attempts: attempts('Of its jobs; as the queue says unless given.'),
    timeout: duration('Of its jobs', 1, LONGEST_TIMER),
  },
)
export const declared = reply('DeclaredSchedule', { name: text, outcome: oneOf(DECLARE_OUTCOMES) }, undefined)
export const scheduleChange = request('ScheduleChange', { paused: boolean }, {})
export const changedSchedule = reply('ChangedSchedule', { name: text, paused: boolean })
export const removedSchedule = reply('RemovedSchedule', { name: text, outcome: text })
export const ranSchedule = reply('RanSchedule', { id, existing: boolean })

export const schedule = reply(
  'Schedule',
  {
    ...{
      name: text,
      when: text,
      tz: text,
      missed: text,
      jitter: anInteger,
      from: nullable(time),
      until: nullable(time),
    },
    ...{ queue: text, paused: boolean, lastAt: nullable(time), changedAt: time },
    nextAt: described(
      nullable(time),
      'When it fires next; null: never again, it is paused, or nobody has planned it yet.',
    ),
    declared: described(boolean, 'Whether it was declared in the last 90 s. One that was not goes on firing.'),
  },
  undefined,
  'Without the data of its jobs.',
)
export const scheduleList = reply('ScheduleList', { schedules: array(schedule) }, { next: text })

export const LIST_QUERY = {
  limit: integer(1, 100, { description: 'Most schedules of a page.', default: 20 }),
  after: described(scheduleName, '`next` of the page before.'),
}
export const PREVIEW_LINE = { when }
export const PREVIEW_QUERY = { tz, count: integer(1, 100, { default: 5, description: 'How many times.' }) }
export const preview = reply('SchedulePreview', { words: text, times: array(time) })
