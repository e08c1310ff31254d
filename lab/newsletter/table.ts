/** The figures of a run, side by side, in 80 columns. */
import { styleText } from 'node:util'
import type { Row } from './run.ts'

const HEADERS = ['', 'success', 'p50', 'p95', 'p99', 'accepted', 'mails', 'twice', 'lost']

export function table(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.variant.title,
    `${round((row.accepted / row.requests) * 100)} %`,
    time(row.p50),
    time(row.p95),
    time(row.p99),
    count(row.accepted),
    count(row.mails),
    count(row.extra),
    count(row.lost),
  ])
  const widths = HEADERS.map((header, column) =>
    Math.max(header.length, ...cells.map((row) => row[column]?.length ?? 0)),
  )
  const pad = (row: readonly string[]) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
  const lines = cells.map((row, index) => {
    const padded = pad(row)
    const last = padded.length - 1
    padded[0] = styleText('bold', padded[0] ?? '')
    padded[last] = styleText(rows[index]?.lost === 0 ? 'green' : 'red', padded[last] ?? '')
    return padded.join('  ')
  })
  const rule = widths.map((width) => '─'.repeat(width)).join('──')
  return [styleText('dim', pad(HEADERS).join('  ')), styleText('dim', rule), ...lines].join('\n')
}

export function time(ms: number | null): string {
  if (ms === null) return '–'
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

export function count(value: number): string {
  return value.toLocaleString('en')
}

function round(value: number): string {
  // Never up to 100: a single failure must show.
  return String(Math.floor(value * 10) / 10)
}
