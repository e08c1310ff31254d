/** The record of a run: plain JSON, from which the page, the Markdown and the summary are drawn. */
import type { Bar } from '../bars.ts'
import type { Facts } from '../machine.ts'

export interface Report {
  /** Changes when old records can no longer be drawn. */
  format: 1
  /** When the run began, as ISO 8601, and how long it took. */
  at: string
  seconds: number
  size: SizeName
  command: string
  machine: Facts & { generator: string }
  /** Name and version of each server and package that took part. */
  versions: Record<string, string>
  chapters: Chapter[]
}

/** `smoke` only shows that it works. `full` is the size of the published runs. */
export type SizeName = 'smoke' | 'usual' | 'full'

/** One experiment. */
export interface Chapter {
  /** Such as E1. */
  id: string
  title: string
  /** A word for the page's navigation. */
  short: string
  /** What is asked, in one sentence. */
  question: string
  setUp: string[]
  published: Published[]
  parts: Part[]
  findings: Finding[]
  /** Shell commands that measure it again. */
  commands: string[]
  seconds: number
  /** What could not be measured, and why. */
  failures: string[]
}

/** A table of the write-up. */
export interface Published {
  title: string
  head: string[]
  rows: string[][]
  note?: string
}

export interface Part {
  /** Unique in its chapter; a part of the page's links. */
  id: string
  title: string
  about: string
  columns: Column[]
  rows: Row[]
  charts: Chart[]
  notes: string[]
}

/** `percentile`: 1 ÷ (1 − share), so that a logarithmic axis has 90 %, 99 % and 99.9 % equally far apart. */
export type Unit = 'percentile' | 'count' | 'per second' | 'ms' | 's' | 'µs' | 'bytes' | 'share' | 'times' | 'text'

export interface Column {
  key: string
  label: string
  unit: Unit
  /** Which way is good; a column without it is not judged. */
  better?: 'more' | 'less'
}

/** `plain` is written by hand, as in the write-up; `ceiling` is what no variant can pass; `rival` is another library. */
export type Kind = 'plain' | 'ours' | 'rival' | 'ceiling'

export interface Row {
  variant: string
  title: string
  kind: Kind
  /** By the key of the column. A figure that does not apply is missing; one that is unbounded, such as an endless wait, is null. */
  figures: Record<string, number | string | null>
  /** The write-up's own figures for this variant, by the same keys. */
  published?: Record<string, number | string>
  /** What the design promises of this row. */
  bars: Bar[]
  /** Why this variant did not run. */
  skipped?: string
}

export type Chart = BarChart | LineChart

/** One bar for each row of the part, from a column of its table. */
export interface BarChart {
  kind: 'bars'
  title: string
  column: string
  /** Where figures differ by orders of magnitude. */
  log?: boolean
}

export interface Axis {
  label: string
  unit: Unit
  log?: boolean
}

export interface LineChart {
  kind: 'lines'
  title: string
  /** What the picture shows, for readers who do not see it. */
  summary: string
  x: Axis
  y: Axis
  series: Series[]
  /** Moments that explain the lines, such as a kill. */
  marks?: { x: number; label: string }[]
}

export interface Series {
  title: string
  kind: Kind
  points: [x: number, y: number][]
}

/** A sentence of the summary. Its figures come from the parts. */
export interface Finding {
  /** `missed`: a promise of ours that did not hold in this run. */
  verdict: 'falls' | 'holds' | 'missed'
  /** The one figure to remember, formatted. */
  figure: string
  text: string
  /** Id of the part that shows it. */
  part: string
}

/** @returns undefined for a figure that does not apply, a text, or null */
export function numberIn(row: Row | undefined, key: string): number | undefined {
  const value = row?.figures[key]
  return typeof value === 'number' ? value : undefined
}

export const rowOf = (part: Part | undefined, variant: string): Row | undefined =>
  part?.rows.find((row) => row.variant === variant)

export const partOf = (parts: readonly Part[], id: string): Part | undefined => parts.find((part) => part.id === id)
