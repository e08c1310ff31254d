/** Figures as people read them. */

/** 1234567 as 1,234,567. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

/** Milliseconds as `42s`, `3m 5s`, `2h 10m` or `5d 3h`. */
export function lasting(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m ${seconds % 60}s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`
}

/** Milliseconds, to three digits; from a minute on, whole seconds. */
export function time(ms: number): string {
  if (ms < 0.001) return '0ms'
  if (ms < 1_000) return `${Number(ms.toPrecision(3))}ms`
  // A tiny part of a second would be rounded up.
  return ms < 60_000 ? `${Number((ms / 1_000).toPrecision(3))}s` : lasting(Math.round(ms / 1_000) * 1_000)
}

/** What stands where there is no figure. */
export const NONE = '-'

export const timeOrNone = (ms: number | null | undefined): string => (ms === null || ms === undefined ? NONE : time(ms))

/** How long ago a moment was, or how far off it is. @param now milliseconds since 1970 */
export function ago(moment: Date | null, now: number = Date.now()): string {
  if (moment === null) return NONE
  const ms = now - moment.getTime()
  return ms >= 0 ? `${lasting(ms)} ago` : `in ${lasting(-ms)}`
}

/** A rate per second: 0.25, 3.4, 120, 12k. */
export function perSecond(rate: number): string {
  if (rate >= 10_000) return `${Math.round(rate / 1000)}k`
  if (rate >= 100) return String(Math.round(rate))
  return String(Number(rate.toPrecision(2)))
}

/** 1,234,567 as 1.2M, for narrow columns. */
export function short(count: number): string {
  if (count < 10_000) return String(count)
  const [size, unit] = count < 999_500 ? [1e3, 'k'] : count < 999_500_000 ? [1e6, 'M'] : [1e9, 'G']
  const shown = count / size
  return `${shown < 99.5 ? Number(shown.toPrecision(3)) : Math.round(shown)}${unit}`
}

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${grouped(count)} ${count === 1 ? one : many}`
