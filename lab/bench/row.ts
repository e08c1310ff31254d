/** Rows that compare: ours, the rivals' beside it, and the bar it has to clear; and the table that they make. */
import { type Bar, compact } from '../bars.ts'
import type { Table } from '../experiment.ts'
import type { Summary } from '../statistics.ts'

export type Unit = 'jobs/s' | 'req/s' | 'ms' | 's' | '% CPU' | 'jobs' | '×' | 'bytes' | 'MiB' | 'rows'

export interface Figure {
  name: string
  figure: Summary
  cpu?: Summary | undefined
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
export interface Comparison {
  title: string
  rows: Row[]
  notes: string[]
  /** Heads the first column of figures; Millpond unless given. */
  own?: string
}

/** How many times better ours is than the rival's: of rates the quotient, of times and costs its inverse. */
export function ratio(unit: Unit, ours: Summary, rival: Summary): number {
  const quotient = ours.median / rival.median
  return unit === 'jobs/s' || unit === 'req/s' ? quotient : 1 / quotient
}

/** A column for ours, and one for each that stands beside it. */
export function comparison({ title, rows, notes, own = 'Millpond' }: Comparison): Table {
  // In the order of the row that has the most of them.
  const full = rows.toSorted((a, b) => b.rivals.length - a.rivals.length)
  const beside = [...new Set(full.flatMap(({ rivals }) => rivals.map(({ name }) => name)))]
  return {
    title,
    head: ['', own, ...beside],
    rows: rows.map((row) => ({
      cells: [`${row.name}, ${row.unit}`, `**${cell(row.ours, row.cpu)}**`, ...beside.map((name) => rival(row, name))],
      bars: row.bar === undefined ? [] : [row.bar],
      figures: row,
    })),
    notes,
  }
}

function rival(row: Row, name: string): string {
  const found = row.rivals.find((each) => each.name === name)
  if (found === undefined) return ''
  return `${cell(found.figure, found.cpu)} · ${compact(ratio(row.unit, row.ours, found.figure))} ×`
}

function cell({ median, min, max }: Summary, cpu?: Summary): string {
  const isOne = min === max || !Number.isFinite(median)
  const range = isOne ? compact(median) : `${compact(median)} (${compact(min)}–${compact(max)})`
  return cpu === undefined ? range : `${range}, ${compact(cpu.median)} µs`
}
