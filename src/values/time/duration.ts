import { MillpondError } from '../errors/errors.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'

/**
 * `'250ms' '30s' '5m' '1h' '7d'`, or a number of milliseconds. Any string passes the types, so that it can come from an
 * environment variable; one of another form is refused with `InvalidOption`.
 */
export type Duration = number | string

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && unit in UNITS
}

/** A century: past it, sums of times would leave the range in which milliseconds are exact everywhere. */
const LONGEST = DEFAULTS.bounds.delay.most
/** For durations that become a timer: past 2^31 − 1 ms, Node's fire at once. */
export const LONGEST_TIMER = DEFAULTS.bounds.timeout.most
/** The last moment that a Date can hold, in milliseconds since 1970. */
export const LAST_MOMENT = DEFAULTS.bounds.runAt.most

/** The last moment that RFC 3339 has a text for: its years have four digits. In milliseconds since 1970. */
export const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** RFC 3339 in UTC. A later time is shown as LAST_TIME: a Date goes on to `+275760-…`, which few clients can read. */
export function timeText(time: Date): string {
  return new Date(Math.min(time.getTime(), LAST_TIME)).toISOString()
}

/**
 * Milliseconds, rounded to whole ones; from `least` (0 unless given) to `most` (a century unless given).
 * @param name what the duration is for, as the error names it
 * @throws InvalidOption
 */
export function milliseconds(duration: unknown, name: string, least = 0, most = LONGEST): number {
  let ms: number | undefined
  if (typeof duration === 'number') ms = duration
  else if (typeof duration === 'string') {
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(duration)
    const unit = match?.[2]
    if (isUnit(unit)) ms = Number(match?.[1]) * UNITS[unit]
  }
  if (ms === undefined || !(ms >= least && ms <= most)) {
    throw new MillpondError(
      'InvalidOption',
      `${name} must be a duration such as '250ms', '30s', '5m', '1h' or '7d', or a number of milliseconds, ` +
        `from ${least} ms to ${most / UNITS.d}d; got ${isMeant(duration) ? shown(duration) : kindOf(duration)}`,
    )
  }
  return Math.round(ms)
}

/** Whether it is meant as a duration, and so worth showing. */
function isMeant(duration: unknown): boolean {
  return typeof duration === 'string' ? /^-?\d.{0,15}$/.test(duration) : typeof duration === 'number'
}

/**
 * How an error shows an option or a name that someone passed: short and on one line. Of a URL only the scheme, since it may hold a
 * password; of objects and functions only their kind. Never throws.
 */
export function shown(value: unknown): string {
  if (typeof value === 'function' || (typeof value === 'object' && value !== null)) return kindOf(value)
  const text = typeof value === 'string' ? JSON.stringify(value.replace(/:\/\/.*/s, '://…')) : String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

/** How an error names something that may be a payload or a secret: by its kind, without any of its content. Never throws. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  try {
    if (Array.isArray(value)) return 'an array'
    const kind = Object.prototype.toString.call(value).slice(8, -1)
    if (kind === 'Object' || !/^[A-Z]\w{0,40}$/.test(kind)) return 'an object'
    return `${/^[AEIO]/.test(kind) ? 'an' : 'a'} ${kind}`
  } catch {
    return 'an object'
  }
}

/** Milliseconds as an option takes them: 7d, 90s, 250ms. */
export function durationText(ms: number): string {
  const unit = (['d', 'h', 'm', 's'] as const).find((one) => ms > 0 && ms % UNITS[one] === 0) ?? 'ms'
  return `${ms / UNITS[unit]}${unit}`
}
