/** A variant's runs, summed up, and what it promised. */
import { atLeast, atMost, type Bar, compact } from '../../bench/row.ts'
import { median } from '../../bench/statistics.ts'
import { markdown as table, verdicts } from '../../markdown.ts'
import type { Outcome } from './run.ts'
import { LIMIT } from './settings.ts'
import { type Counting, type VariantName, variant } from './variants.ts'

/** By how much the rate may be above the limit. */
const ABOVE = 0.01

export interface Row {
  variant: VariantName
  runs: Outcome[]
  bars: Bar[]
}

const least = (runs: readonly Outcome[], figure: keyof Outcome) => Math.min(...runs.map((run) => run[figure]))
const most = (runs: readonly Outcome[], figure: keyof Outcome) => Math.max(...runs.map((run) => run[figure]))

export function row(name: VariantName, runs: Outcome[]): Row {
  const { least: share } = variant(name)
  if (share === undefined) return { variant: name, runs, bars: [] }
  const bars = [
    atLeast(least(runs, 'rate'), LIMIT * share, '/s'),
    atMost(most(runs, 'rate'), LIMIT * (1 + ABOVE), '/s'),
    atMost(most(runs, 'refused'), 0, ' refused'),
    atMost(most(runs, 'missing'), 0, ' missing'),
  ]
  return { variant: name, runs, bars }
}

const HEAD = ['', 'rate', 'mails/s', 'most that came in a second', 'refused', 'missing', 'twice', 'bars']

const SERVERS: Record<Counting, string> = {
  bucket: `A server that takes ${LIMIT} a second, and up to a second's worth at once`,
  window: `A server that never takes more than ${LIMIT} within a second`,
}

export function markdown(rows: readonly Row[]): string {
  return (['bucket', 'window'] as const)
    .map((counting) => [counting, rows.filter((each) => variant(each.variant).counting === counting)] as const)
    .filter(([, some]) => some.length > 0)
    .map(([counting, some]) => `### ${SERVERS[counting]}\n\n${section(some)}`)
    .join('\n\n')
}

function section(rows: readonly Row[]): string {
  const lines = rows.map(({ variant: name, runs, bars }) => {
    const { title, rate } = variant(name)
    return [
      title,
      rate === undefined ? '' : `\`${JSON.stringify(rate)}\``,
      `**${median(runs.map((run) => run.rate)).toFixed(1)}**`,
      ...(['busiest', 'refused', 'missing', 'twice'] as const).map((figure) => compact(most(runs, figure))),
      verdicts(bars),
    ]
  })
  return table(HEAD, lines, ['', 'rate', 'bars'])
}
