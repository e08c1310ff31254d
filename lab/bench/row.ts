/** A line of the report: ours, the rivals' beside it, and the bar it has to clear. */
import type { Summary } from './statistics.ts'

export type Unit = 'jobs/s' | 'req/s' | 'ms' | 's' | '% CPU' | 'jobs' | '×' | 'bytes' | 'MiB' | 'rows'

export interface Figure {
  name: string
  figure: Summary
  cpu?: Summary | undefined
}
export interface Bar {
  text: string
  /** What was got, in the bar's own terms. */
  got: string
  cleared: boolean
  /** Missed, but by so little that the machine may be the reason. */
  near: boolean
}
export interface Row {
  name: string
  unit: Unit
  ours: Summary
  /** Microseconds per job. */
  cpu?: Summary | undefined
  rivals: Figure[]
  bar?: Bar | undefined
}
export interface Report {
  title: string
  rows: Row[]
  notes: string[]
}

/** How many times better ours is than the rival's: of rates the quotient, of times and costs its inverse. */
export function ratio(unit: Unit, ours: Summary, rival: Summary): number {
  const quotient = ours.median / rival.median
  return unit === 'jobs/s' || unit === 'req/s' ? quotient : 1 / quotient
}

/** The machines that this was measured on sway by more than this. */
const SWAY = 0.15

export function atLeast(got: number, least: number, unit = ''): Bar {
  return bar('≥', got, least, got >= least, got >= least * (1 - SWAY), unit)
}

export function atMost(got: number, most: number, unit = ''): Bar {
  return bar('≤', got, most, got <= most, got <= most * (1 + SWAY), unit)
}

function bar(sign: string, got: number, bound: number, cleared: boolean, held: boolean, unit: string): Bar {
  return {
    text: `${sign} ${compact(bound)}${unit}`,
    got: `${compact(got)}${unit}`,
    cleared,
    near: held && !cleared,
  }
}

/** Three significant digits, thousands as k. */
export function compact(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 9.995e6) return `${(value / 1e6).toFixed(1)}M`
  if (size >= 99_950) return `${(value / 1e3).toFixed(0)}k`
  if (size >= 9_995) return `${(value / 1e3).toFixed(1)}k`
  if (size >= 1_000) return `${(value / 1e3).toFixed(2)}k`
  if (Number.isInteger(value)) return String(value)
  return size >= 100
    ? value.toFixed(0)
    : size >= 10
      ? value.toFixed(1)
      : size >= 1
        ? value.toFixed(2)
        : value.toFixed(3)
}
