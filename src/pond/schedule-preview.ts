/** What a schedule's line means, before it is used. */
import { checkOptions, isInteger } from '../values/options/options.ts'
import { timesOf } from '../values/schedules/times.ts'
import { wordsOf } from '../values/schedules/words.ts'
import { checkLine } from './schedule-options.ts'

export interface PreviewOptions {
  /** The time zone of a cron line, `UTC` unless given. */
  tz?: string | undefined
  /** How many times; 1 to 100, 5 unless given. */
  count?: number | undefined
}

export interface Preview {
  /** The line in English. */
  words: string
  times: Date[]
}

/** @throws InvalidOption */
export async function previewOf(when: string, options: PreviewOptions = {}): Promise<Preview> {
  const isText = (value: unknown) => typeof value === 'string' || 'a time zone'
  const { tz = 'UTC', count = 5 } = checkOptions(options, { tz: isText, count: isInteger(1, 100) }, 'preview')
  const line = checkLine(when)
  const times = timesOf({ when: line, tz, from: null, until: null })
  const dates: Date[] = []
  for (let at = times.after(Date.now()); at !== null && dates.length < count; at = times.after(at))
    dates.push(new Date(at))
  return { words: await wordsOf({ when: line, tz }), times: dates }
}
