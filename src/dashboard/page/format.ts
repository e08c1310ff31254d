/** Numbers, times and durations, as people read them. */

const GROUPED = new Intl.NumberFormat('en-US')
export const count = (value: number): string => GROUPED.format(value)

/** Such as 12.4k: for small places, with the whole number beside it in a title. */
export function short(value: number): string {
  if (value < 10_000) return count(value)
  if (value < 999_500) return `${Number((value / 1000).toPrecision(3))}k`
  if (value < 999_500_000) return `${Number((value / 1_000_000).toPrecision(3))}M`
  return `${Number((value / 1_000_000_000).toPrecision(3))}G`
}

export function rate(perSecond: number | null): string {
  if (perSecond === null) return '–'
  if (perSecond === 0) return '0'
  if (perSecond < 0.01) return '<0.01'
  return perSecond < 100 ? String(Number(perSecond.toPrecision(2))) : short(Math.round(perSecond))
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const

/** Two units at most: 3m 20s, 450 ms. */
export function duration(ms: number | null): string {
  if (ms === null) return '–'
  if (ms < 1) return '<1 ms'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const index = UNITS.findIndex(([, size]) => ms >= size)
  const [unit, size] = UNITS[index] ?? ['s', 1000]
  const whole = Math.floor(ms / size)
  const next = UNITS[index + 1]
  const rest = next === undefined ? 0 : Math.floor((ms - whole * size) / next[1])
  return `${whole}${unit}${next !== undefined && rest > 0 ? ` ${rest}${next[0]}` : ''}`
}

export const ago = (at: number, now: number): string =>
  at > now ? `in ${duration(at - now)}` : `${duration(now - at)} ago`

const CLOCK = new Intl.DateTimeFormat('sv-SE', {
  dateStyle: 'short',
  timeStyle: 'medium',
})
/** 2026-03-04 12:30:01.250, in the zone of the browser. */
export const clock = (at: number): string => `${CLOCK.format(at)}.${String(at % 1000).padStart(3, '0')}`

export function bytes(size: number): string {
  if (size < 1024) return `${count(size)} B`
  return size < 1024 * 1024 ? `${(size / 1024).toFixed(1)} KiB` : `${(size / 1024 / 1024).toFixed(1)} MiB`
}

/** A duration as settings take it: 30s, 1h. */
export function exact(ms: number): string {
  if (ms === 0) return '0'
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
