/** A variant's runs at one number of connections, summed up, and what it promised. */
import { atLeast, atMost, type Bar, compact } from '../bench/row.ts'
import { median } from '../bench/statistics.ts'
import { markdown as table, verdicts } from '../markdown.ts'
import type { Outcome } from './run.ts'
import { PARTS } from './usage.ts'
import { type VariantName, variant } from './variants.ts'

/** The bars on the rate are for this many connections. */
export const JUDGED = 64

export interface Row {
  variant: VariantName
  connections: number
  runs: Outcome[]
  /** Of each run's rate and that of the handler that does nothing in the same round; empty without it. */
  shares: number[]
  bars: Bar[]
}

/** @param ceilings the rates of the handler that does nothing, run by run */
export function row(name: VariantName, connections: number, runs: Outcome[], ceilings: readonly number[]): Row {
  const { least, within, keepsNothing } = variant(name)
  const shares = ceilings.length < runs.length ? [] : runs.map(({ rate }, run) => rate / (ceilings[run] ?? Number.NaN))
  const bars: Bar[] = []
  if (least !== undefined && connections === JUDGED && shares.length > 0) {
    bars.push(atLeast(median(shares), least, ' × no-op'))
  }
  if (within !== undefined) bars.push(atMost(Math.max(...runs.map(({ behind }) => behind)), within, ' ms behind'))
  bars.push(atMost(most(runs, 'failed'), 0, ' failed'))
  if (within !== undefined || (least !== undefined && !keepsNothing))
    bars.push(atMost(most(runs, 'missing'), 0, ' lost'))
  return { variant: name, connections, runs, shares, bars }
}

type Figure = Exclude<keyof Outcome, 'cpu'>
const most = (runs: readonly Outcome[], figure: Figure) => Math.max(...runs.map((run) => run[figure]))

const HEAD = [
  '',
  'connections',
  'req/s',
  '× no-op',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'accepted',
  'rows at the end of the load',
  'all there after',
  'missing',
  'twice',
  'failed',
  'bars',
]

export function markdown(rows: readonly Row[], patience: number): string {
  const lines = rows.map(({ variant: name, connections, runs, shares, bars }) => {
    const { title, keepsNothing } = variant(name)
    const middle = (figure: Figure) => median(runs.map((run) => run[figure]))
    const behind = middle('behind')
    const stored = keepsNothing
      ? ['', '', '', '']
      : [
          compact(middle('rowsAtEnd')),
          Number.isFinite(behind) ? `${compact(behind)} ms` : `> ${patience / 1000} s`,
          compact(most(runs, 'missing')),
          compact(most(runs, 'doubled')),
        ]
    return [
      title,
      String(connections),
      `**${compact(middle('rate'))}**`,
      shares.length > 0 ? compact(median(shares)) : '',
      ...(['p50', 'p95', 'p99'] as const).map((figure) => compact(middle(figure))),
      compact(middle('accepted')),
      ...stored,
      compact(most(runs, 'failed')),
      verdicts(bars),
    ]
  })
  return table(HEAD, lines)
}

/** Where the cores' time went; undefined where nobody tells. */
export function cpuMarkdown(rows: readonly Row[]): string | undefined {
  if (rows.some(({ runs }) => runs.some(({ cpu }) => cpu === undefined))) return undefined
  const lines = rows.map(({ variant: name, connections, runs }) => {
    const parts = PARTS.map((part) => median(runs.map(({ cpu }) => cpu?.[part] ?? Number.NaN)))
    const sum = median(runs.map(({ cpu }) => PARTS.reduce((all, part) => all + (cpu?.[part] ?? Number.NaN), 0)))
    return [variant(name).title, String(connections), ...parts.map((part) => part.toFixed(1)), `**${sum.toFixed(1)}**`]
  })
  const title = 'CPU µs per request'
  return table([title, 'connections', ...PARTS, 'in all'], lines, [title])
}
