/**
 * The times of a cron line, by croner: docs/decisions/077-croner-for-schedules.md. `contract/vectors/schedules.json` pins them.
 *
 * A line with one time a day fires once on days on which clocks change. Where the time does not exist, it fires when the
 * clock has been moved; where it comes twice, the first time counts. Other lines go by what the clock shows: they fire in
 * both hours that a clock shows twice.
 */
import { Cron } from 'croner'
import { MillpondError } from '../errors/errors.ts'
import { type MidnightGap, midnightGaps } from './midnight-gaps.ts'
import type { Times } from './records.ts'

const NICKNAMES: ReadonlySet<string> = new Set([
  ...['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'],
])

/** @throws InvalidOption */
export function cronTimes(line: string, tz: string): Times {
  const fields = line.split(/\s+/).length
  const isLine = fields === 5 || fields === 6 || NICKNAMES.has(line)
  if (!isLine) throw invalid(line, "must be 5 or 6 fields, a name such as '@daily', or 'every 90s'")
  let cron: Cron
  try {
    cron = new Cron(line, { timezone: tz, paused: true, ...(fields > 1 && { mode: '5-or-6-parts' }) })
  } catch (error) {
    throw invalid(
      line,
      `is no cron line: ${error instanceof Error ? error.message.replace(/^\w+: /, '') : 'unreadable'}`,
    )
  }
  // 30 February, say. Lines have no years, so any moment will do to ask.
  if (cron.nextRun(new Date(0)) === null) throw invalid(line, 'never fires')
  const times: Times = {
    after: (ms) => cron.nextRun(new Date(ms))?.getTime() ?? null,
    before: (ms, count) =>
      cron
        .previousRuns(count, new Date(ms))
        .map((date) => date.getTime())
        .reverse(),
  }
  const isFixed = fields > 1 && /^[\d\s]+$/.test(line.split(/\s+/).slice(0, -3).join(' '))
  return isFixed ? withMidnightGaps(times, line, tz) : times
}

/** A time that the clock skips over midnight fires when the clock has been moved, as one does that it skips within a day. */
function withMidnightGaps(times: Times, line: string, tz: string): Times {
  // What the clock shows, as if it were UTC.
  const shown = new Cron(line, { timezone: 'UTC', paused: true, mode: '5-or-6-parts' })
  const isIn = ({ from, until }: MidnightGap) =>
    (shown.nextRun(new Date(from - 1))?.getTime() ?? Number.POSITIVE_INFINITY) < until
  /** The moments after one, and before another one. */
  const between = (after: number, before: number): number[] => {
    const moments: number[] = []
    const last = new Date(before).getUTCFullYear()
    for (let year = new Date(after).getUTCFullYear(); year <= last; year++) {
      for (const gap of midnightGaps(tz, year)) {
        if (gap.at > after && gap.at < before && isIn(gap)) moments.push(gap.at)
      }
    }
    return moments
  }
  return {
    after(ms) {
      const next = times.after(ms)
      return next === null ? null : (between(ms, next)[0] ?? next)
    },
    before(ms, count) {
      const all = times.before(ms, count)
      const [first = ms] = all
      return [...all, ...between(first, ms)].sort((one, other) => one - other).slice(-count)
    },
  }
}

/** @throws InvalidOption */
export function checkZone(tz: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: tz })
  } catch {
    throw new MillpondError(
      'InvalidOption',
      `tz must be an IANA time zone such as 'Europe/Paris'; got ${shownLine(tz)}`,
    )
  }
}

/** A line is no secret, but it may be anything by mistake. */
const shownLine = (line: string): string => JSON.stringify(line.length > 60 ? `${line.slice(0, 57)}…` : line)

const invalid = (line: string, why: string): MillpondError =>
  new MillpondError('InvalidOption', `the cron line ${shownLine(line)} ${why}`)
