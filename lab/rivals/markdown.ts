/** Reports as Markdown tables: a column for ours, one for each that stands beside it, and one for the bar. */
import { compact, type Row, ratio } from '../bench/row.ts'
import type { Summary } from '../bench/statistics.ts'
import type { Page } from './section.ts'

export function markdown({ title, rows, notes, own = 'Millpond' }: Page): string {
  // In the order of the row that has the most of them.
  const full = rows.toSorted((a, b) => b.rivals.length - a.rivals.length)
  const beside = [...new Set(full.flatMap(({ rivals }) => rivals.map(({ name }) => name)))]
  const withBars = rows.some(({ bar }) => bar !== undefined)
  const head = ['', own, ...beside, ...(withBars ? ['bar'] : [])]
  const lines = rows.map((row) => [
    `${row.name}, ${row.unit}`,
    `**${cell(row.ours)}**`,
    ...beside.map((name) => rival(row, name)),
    ...(withBars ? [verdict(row)] : []),
  ])
  const rule = head.map((_, column) => (column === 0 || (withBars && column === head.length - 1) ? '---' : '---:'))
  const table = [head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`)
  return [`\n### ${title}\n`, ...table, '', ...notes.map((note) => `- ${note}`)].join('\n')
}

function rival(row: Row, name: string): string {
  const found = row.rivals.find((each) => each.name === name)
  if (found === undefined) return ''
  return `${cell(found.figure)} · ${compact(ratio(row.unit, row.ours, found.figure))} ×`
}

function cell({ median, min, max }: Summary): string {
  return min === max || !Number.isFinite(median)
    ? compact(median)
    : `${compact(median)} (${compact(min)}–${compact(max)})`
}

function verdict({ bar }: Row): string {
  if (bar === undefined) return ''
  return `${bar.text}: ${bar.cleared ? '✓' : '✗'} ${bar.got}`
}
