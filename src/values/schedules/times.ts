/** The times at which a schedule fires. */

import { MillpondError } from '../errors/errors.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { milliseconds } from '../time/duration.ts'
import { checkZone, cronTimes } from './cron.ts'
import type { Times, Timing } from './records.ts'

/** An interval shorter than this would fire at every sweep. */
const LEAST_INTERVAL = DEFAULTS.bounds.interval.least

const made = new Map<string, Times>()
/** Lines that are kept parsed. */
const MOST_KEPT = 1000

/** @throws InvalidOption: the line, the zone, `from` and `until`, or a schedule that would never fire */
export function timesOf({ when, tz, from, until }: Pick<Timing, 'when' | 'tz' | 'from' | 'until'>): Times {
  if (from !== null && until !== null && from > until) {
    throw new MillpondError('InvalidOption', 'from must not be after until')
  }
  const key = JSON.stringify([when, tz, when.startsWith('every ') ? from : null])
  let times = made.get(key)
  if (times === undefined) {
    checkZone(tz)
    times = when.startsWith('every ') ? intervals(when, from ?? 0) : cronTimes(when, tz)
    if (made.size >= MOST_KEPT) made.clear()
    made.set(key, times)
  }
  return within(times, from, until)
}

/** Multiples of the interval since `start`, so that every process finds the same ones. */
function intervals(when: string, start: number): Times {
  const length = milliseconds(
    when.slice('every '.length).trim(),
    `the interval of ${JSON.stringify(when.slice(0, 40))}`,
    LEAST_INTERVAL,
  )
  const last = (ms: number) => start + Math.floor((ms - start) / length) * length
  return {
    after: (ms) => last(ms) + length,
    before(ms, count) {
      const latest = last(ms - 1)
      return Array.from({ length: count }, (_, at) => latest - (count - 1 - at) * length)
    },
  }
}

function within(times: Times, from: number | null, until: number | null): Times {
  const isWithin = (ms: number) => (from === null || ms >= from) && (until === null || ms <= until)
  return {
    after(ms) {
      const next = times.after(from === null ? ms : Math.max(ms, from - 1))
      return next !== null && isWithin(next) ? next : null
    },
    before: (ms, count) => times.before(until === null ? ms : Math.min(ms, until + 1), count).filter(isWithin),
  }
}
