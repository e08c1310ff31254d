import { MillpondError } from './errors.ts'

/** `'250ms' '30s' '5m' '1h' '7d'`, or a number of milliseconds. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

function isUnit(unit: string | undefined): unit is keyof typeof UNITS {
  return unit !== undefined && unit in UNITS
}

/** A century: past it, sums of times would leave the range in which milliseconds are exact everywhere. */
const LONGEST = 36_525 * UNITS.d
/** For durations that become a timer: past 2^31 − 1 ms, Node's fire at once. */
export const LONGEST_TIMER = 24 * UNITS.d
/** The last moment that a Date can hold, in milliseconds since 1970. */
export const LAST_MOMENT = 8.64e15

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
        `from ${least} ms to ${most / UNITS.d}d; got ${shown(duration)}`,
    )
  }
  return Math.round(ms)
}

/** How an error shows a value that someone passed: short, on one line, and never throwing. */
export function shown(value: unknown): string {
  try {
    const text = typeof value === 'string' ? JSON.stringify(value) : String(value)
    return text.length > 80 ? `${text.slice(0, 77)}…` : text
  } catch {
    return typeof value
  }
}
