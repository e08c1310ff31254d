/** A variant's runs, summed up, and what Millpond promises of them. */
import { atLeast, atMost, type Bar, compact } from '../bench/row.ts'
import { median } from '../bench/statistics.ts'
import { markdown as table, verdicts } from '../markdown.ts'
import type { Outcome } from './run.ts'
import { ceilingOf, type VariantName, variant } from './variants.ts'

/** Of the ceiling that the flight sets; of the constant answer's rate, where answers are reused. */
const OF_CEILING = 0.9
const OF_CONSTANT = 0.8

export interface Row {
  variant: VariantName
  runs: Outcome[]
  /** Of each run's rate: that of the constant answer from as many processes in the same round, and of the ceiling; empty without. */
  ofConstant: number[]
  ofCeiling: number[]
  bars: Bar[]
}

export function rows(connections: number, outcomes: ReadonlyMap<VariantName, Outcome[]>): Row[] {
  return [...outcomes].map(([name, runs]) => {
    const { processes, flies, reuses } = variant(name)
    const constants = outcomes.get(ceilingOf(processes)) ?? []
    const ofConstant = constants.map((constant, round) => (runs[round]?.rate ?? Number.NaN) / constant.rate)
    const ofCeiling =
      flies && !reuses
        ? constants.map((constant, round) => shareOfCeiling(runs[round], constant.rate, connections))
        : []
    const bars: Bar[] = [
      atMost(
        most(runs, ({ failed }) => failed),
        0,
        ' failed',
      ),
    ]
    if (flies) {
      bars.push(
        atMost(
          most(runs, ({ atOnce }) => atOnce),
          1,
          ' at once',
        ),
        atMost(
          most(runs, ({ calls, told }) => Math.abs(calls - told)),
          0,
          ' calls not told',
        ),
      )
      if (ofCeiling.length > 0) bars.push(atLeast(median(ofCeiling), OF_CEILING, ' × ceiling'))
      if (reuses && ofConstant.length > 0) bars.push(atLeast(median(ofConstant), OF_CONSTANT, ' × constant'))
    }
    return { variant: name, runs, ofConstant, ofCeiling, bars }
  })
}

/** In a closed loop everyone waits for the flight, and then for the answers to all: connections ÷ (flight + connections ÷ constant rate). */
function shareOfCeiling(run: Outcome | undefined, constant: number, connections: number): number {
  if (run === undefined) return Number.NaN
  const ceiling = connections / (run.flight / 1000 + connections / constant)
  return run.rate / ceiling
}

const most = (runs: readonly Outcome[], figure: (run: Outcome) => number) => Math.max(...runs.map(figure))

const HEAD = [
  '',
  'processes',
  'req/s',
  '× constant',
  '× ceiling',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'upstream calls',
  'told',
  'at once',
  'call ms',
  'CPU µs',
  'failed',
  'bars',
]

export function markdown(all: readonly Row[]): string {
  const lines = all.map(({ variant: name, runs, ofConstant, ofCeiling, bars }) => {
    const { title, processes } = variant(name)
    const middle = (figure: keyof Outcome) => compact(median(runs.map((run) => run[figure])))
    const asks = runs.some(({ calls }) => calls > 0)
    return [
      title,
      String(processes),
      `**${middle('rate')}**`,
      ofConstant.length > 0 ? compact(median(ofConstant)) : '',
      ofCeiling.length > 0 ? compact(median(ofCeiling)) : '',
      ...(['p50', 'p95', 'p99'] as const).map(middle),
      ...(['calls', 'told'] as const).map((figure) => (asks ? middle(figure) : '')),
      asks ? compact(most(runs, ({ atOnce }) => atOnce)) : '',
      asks ? middle('flight') : '',
      middle('cpu'),
      compact(most(runs, ({ failed }) => failed)),
      verdicts(bars),
    ]
  })
  return table(HEAD, lines)
}
