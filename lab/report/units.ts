/** Figures as text: at most three significant digits, so that rows can be compared at a glance. */
import type { Unit } from './model.ts'

const KIB = 1024

/** @param value null: unbounded; undefined: does not apply */
export function shown(value: number | string | null | undefined, unit: Unit): string {
  if (value === undefined) return '–'
  if (value === null) return '∞'
  if (typeof value === 'string') return value
  switch (unit) {
    case 'count':
    case 'text':
      return grouped(value)
    case 'per second':
      return `${grouped(value)}/s`
    case 'ms':
      return duration(value)
    case 's':
      return duration(value * 1000)
    case 'µs':
      return value >= 1000 ? duration(value / 1000) : `${digits(value)} µs`
    case 'bytes':
      return bytes(value)
    case 'share':
      return share(value)
    case 'percentile':
      return `${Number(((1 - 1 / value) * 100).toPrecision(4))} %`
    case 'times':
      return `${digits(value)} ×`
  }
}

function digits(value: number): string {
  const size = Math.abs(value)
  if (Number.isInteger(value) || size >= 100) return Math.round(value).toLocaleString('en')
  return value
    .toFixed(size >= 10 ? 1 : size >= 0.995 ? 2 : size >= 0.1 ? 3 : 4)
    .replace(/0+$/, '')
    .replace(/\.$/, '')
}

function grouped(value: number): string {
  const size = Math.abs(value)
  if (size >= 9_995_000) return `${digits(value / 1e6)} M`
  // Three significant digits: the last ones differ from run to run.
  if (size >= 1000)
    return (
      Math.round(value / 10 ** (Math.floor(Math.log10(size)) - 2)) *
      10 ** (Math.floor(Math.log10(size)) - 2)
    ).toLocaleString('en')
  return digits(value)
}

function duration(ms: number): string {
  if (ms >= 2 * 3_600_000) return `${digits(ms / 3_600_000)} h`
  if (ms >= 120_000) return `${digits(ms / 60_000)} min`
  if (ms >= 1000) return `${digits(ms / 1000)} s`
  return `${digits(ms)} ms`
}

function bytes(value: number): string {
  if (value >= KIB ** 3) return `${digits(value / KIB ** 3)} GiB`
  if (value >= KIB ** 2) return `${digits(value / KIB ** 2)} MiB`
  if (value >= KIB) return `${digits(value / KIB)} KiB`
  return `${digits(value)} B`
}

/** Never rounded up to 100 %: a single failure must show. */
function share(value: number): string {
  if (value > 0 && value < 0.0005) return '< 0.1 %'
  const percent = Math.floor(value * 1000 + 1e-9) / 10
  return `${percent} %`
}
