/** A variant's runs in one scenario, summed up, and what it promised. */
import { atMost, type Bar, compact } from '../bench/row.ts'
import { quantile } from '../bench/statistics.ts'
import { markdown as table, verdicts } from '../markdown.ts'
import type { Outcome } from './run.ts'
import { SCENARIOS, type ScenarioName } from './scenarios.ts'
import { DELAYED } from './settings.ts'
import { type VariantName, variant } from './variants.ts'

export interface Row {
  variant: VariantName
  scenario: ScenarioName
  runs: Outcome[]
  /** Of the waits of all runs, in ms. */
  mean: number
  p95: number
  worst: number
  /** Share of the urgent jobs that waited longer than `DELAYED`. */
  delayed: number
  bars: Bar[]
}

export function row(name: VariantName, scenario: ScenarioName, runs: Outcome[]): Row {
  const waits = runs.flatMap((run) => run.waits)
  const p95 = quantile(waits, 0.95)
  const { within } = variant(name)
  return {
    variant: name,
    scenario,
    runs,
    mean: waits.reduce((sum, wait) => sum + wait, 0) / waits.length,
    p95,
    worst: Math.max(...waits),
    delayed: waits.filter((wait) => wait > DELAYED).length / waits.length,
    bars: within === undefined ? [] : [atMost(p95, within, ' ms p95')],
  }
}

const HEAD = [
  '',
  'long jobs that run',
  'urgent jobs',
  'mean ms',
  'p95 ms',
  'worst ms',
  `waited > ${DELAYED} ms`,
  'bars',
]

export function markdown(scenario: ScenarioName, rows: readonly Row[]): string {
  const lines = rows
    .filter((each) => each.scenario === scenario)
    .map(({ variant: name, runs, mean, p95, worst, delayed, bars }) => [
      variant(name).title,
      [...new Set(runs.map(({ held }) => held))].join(', '),
      compact(runs.reduce((sum, { waits }) => sum + waits.length, 0)),
      compact(mean),
      `**${compact(p95)}**`,
      compact(worst),
      `${(delayed * 100).toFixed(1)} %`,
      verdicts(bars),
    ])
  return `### ${SCENARIOS[scenario].title}\n\n${table(HEAD, lines)}`
}
