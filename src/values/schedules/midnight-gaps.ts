/**
 * Hours that a clock skips over midnight. croner lets a fixed time that does not exist fire later on the same day. Where the
 * skipped hour is the last one of its day, as in America/Nuuk, nothing is left of that day, and croner leaves the time out.
 */

const DAY = 86_400_000
const MINUTE = 60_000
/** Zones and years that are kept. */
const MOST_KEPT = 1000

/** What the clock shows is written as ms since 1970, as if it were UTC. */
export interface MidnightGap {
  /** When the clock is moved. */
  at: number
  /** The first time that the clock does not show, and the midnight that ends its day. */
  from: number
  until: number
}

const known = new Map<string, readonly MidnightGap[]>()

/** Those of a year, by UTC. */
export function midnightGaps(tz: string, year: number): readonly MidnightGap[] {
  const key = `${year} ${tz}`
  let gaps = known.get(key)
  if (gaps === undefined) {
    if (known.size >= MOST_KEPT) known.clear()
    gaps = found(offsetIn(tz), Date.UTC(year, 0), Date.UTC(year + 1, 0))
    known.set(key, gaps)
  }
  return gaps
}

function found(offset: (ms: number) => number, start: number, end: number): MidnightGap[] {
  const gaps: MidnightGap[] = []
  for (let day = start; day < end; day += DAY) {
    if (offset(day + DAY) <= offset(day)) continue
    let [before, at] = [day, day + DAY]
    while (at - before > MINUTE) {
      const middle = before + Math.floor((at - before) / (2 * MINUTE)) * MINUTE
      if (offset(middle) === offset(day)) before = middle
      else at = middle
    }
    const from = at + offset(day)
    const until = Math.ceil(from / DAY) * DAY
    // Of an hour that begins at midnight or is over before, croner fires at its end.
    if (from < until && until <= at + offset(day + DAY)) gaps.push({ at, from, until })
  }
  return gaps
}

/** How far the clock is ahead of UTC. */
function offsetIn(tz: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: tz, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric' },
  })
  return (ms) => {
    const parts = new Map<string, number>(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
    const of = (type: string) => parts.get(type) ?? 0
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute')) - ms
  }
}
