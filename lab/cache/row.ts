/** A variant's runs with one size, summed up, and what Millpond promises of them. */
import { atLeast, atMost, type Bar, compact } from '../bench/row.ts'
import { median } from '../bench/statistics.ts'
import { markdown as table, verdicts } from '../markdown.ts'
import type { Outcome } from './run.ts'
import { type VariantName, variant } from './variants.ts'

export interface Row {
  variant: VariantName
  count: number
  runs: Outcome[]
  bars: Bar[]
}

/** The bars against MessagePack are for this many items. */
export const JUDGED = 1000
const TIMES = 10
const MEMORY = 0.5

export function rows(count: number, outcomes: ReadonlyMap<VariantName, Outcome[]>): Row[] {
  return [...outcomes].map(([name, runs]) => ({ variant: name, count, runs, bars: bars(name, count, outcomes) }))
}

function bars(name: VariantName, count: number, outcomes: ReadonlyMap<VariantName, Outcome[]>): Bar[] {
  const own = outcomes.get(name) ?? []
  const wrong = Math.max(...own.map((run) => run.wrong))
  const failed = Math.max(...own.map((run) => run.failed))
  if (name !== 'millpond') return [atMost(wrong, 0, ' wrong')]
  const plain = [...outcomes.keys()].filter((each) => variant(each).plain)
  const ratios = own.map(
    ({ rate }, run) => rate / Math.max(...plain.map((each) => outcomes.get(each)?.[run]?.rate ?? 0)),
  )
  const found = [atMost(wrong, 0, ' wrong'), atMost(failed, 0, ' failed')]
  if (plain.length > 0) found.push(atLeast(median(ratios), 1, ' × the best plain'))
  const packed = outcomes.get('msgpack')
  if (packed === undefined || count !== JUDGED) return found
  const rates = own.map(({ rate }, run) => rate / (packed[run]?.rate ?? Number.NaN))
  const sizes = own.map(({ redis }, run) => redis / (packed[run]?.redis ?? Number.NaN))
  return [...found, atLeast(median(rates), TIMES, ' × MessagePack'), atMost(median(sizes), MEMORY, ' × its memory')]
}

export function markdown(all: readonly Row[]): string {
  const lines = all.map(({ variant: name, count, runs, bars: promised }) => {
    const middle = (figure: keyof Outcome) => median(runs.map((run) => run[figure]))
    return [
      String(count),
      variant(name).title,
      `**${compact(middle('rate'))}**`,
      compact(middle('p50')),
      compact(middle('p99')),
      variant(name).ceiling ? '' : compact(middle('redis')),
      compact(Math.max(...runs.map((run) => run.failed))),
      verdicts(promised),
    ]
  })
  const head = ['items', '', 'req/s', 'p50 ms', 'p99 ms', 'Redis bytes', 'failed', 'bars']
  return table(head, lines)
}
