/** A variant's runs, summed up, and what it promised. */
import { atLeast, atMost, type Bar, compact } from '../../bench/row.ts'
import { median } from '../../bench/statistics.ts'
import { markdown as table, verdicts } from '../../markdown.ts'
import type { Outcome } from './run.ts'
import { LIMIT } from './settings.ts'
import { type VariantName, variant } from './variants.ts'

/** How near to the limit a rate is kept. */
const NEAR = 0.01

export interface Row {
  variant: VariantName
  runs: Outcome[]
  bars: Bar[]
}

const least = (runs: readonly Outcome[], figure: keyof Outcome) => Math.min(...runs.map((run) => run[figure]))
const most = (runs: readonly Outcome[], figure: keyof Outcome) => Math.max(...runs.map((run) => run[figure]))

export function row(name: VariantName, runs: Outcome[]): Row {
  const bars = [
    atLeast(least(runs, 'rate'), LIMIT * (1 - NEAR), '/s'),
    atMost(most(runs, 'rate'), LIMIT * (1 + NEAR), '/s'),
    atMost(most(runs, 'refused'), 0, ' refused'),
    atMost(most(runs, 'missing'), 0, ' missing'),
  ]
  return { variant: name, runs, bars: variant(name).promises ? bars : [] }
}

const HEAD = ['', 'rate', 'mails/s', 'most that came in a second', 'refused', 'missing', 'twice', 'bars']

export function markdown(rows: readonly Row[]): string {
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
