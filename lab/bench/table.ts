/** Reports as aligned text. */
import { compact, type Report, type Row, ratio } from './row.ts'
import type { Summary } from './statistics.ts'

const HEAD = ['', 'Millpond', 'min – max', 'beside', '', 'min – max', 'ratio', 'bar']
const LEFT = new Set([0, 3, 7])

export function table({ title, rows, notes }: Report): string {
  const cells = [HEAD, ...rows.flatMap(lines)]
  const widths = HEAD.map((_, column) => Math.max(...cells.map((line) => (line[column] ?? '').length)))
  const text = cells.map((line) =>
    line
      .map((cell, column) => pad(cell, widths[column] ?? 0, column))
      .join('  ')
      .trimEnd(),
  )
  text.splice(1, 0, widths.map((width) => '─'.repeat(width)).join('──'))
  return [`\n${title}\n`, ...text, ...notes.map((note) => `  · ${note}`)].join('\n')
}

function lines({ name, unit, ours, rivals, bar }: Row): string[][] {
  const verdict =
    bar === undefined ? '' : `${bar.cleared ? '✓' : '✗'} ${bar.text}${bar.text.includes('×') ? ` (${bar.got})` : ''}`
  const own = [`${name}, ${unit}`, compact(ours.median), range(ours)]
  if (rivals.length === 0) return [[...own, '', '', '', '', verdict]]
  return rivals.map((rival, index) => [
    ...(index === 0 ? own : ['', '', '']),
    rival.name,
    compact(rival.figure.median),
    range(rival.figure),
    `${compact(ratio(unit, ours, rival.figure))} ×`,
    index === 0 ? verdict : '',
  ])
}

function range({ min, max }: Summary): string {
  return min === max ? '' : `${compact(min)} – ${compact(max)}`
}

function pad(text: string, width: number, column: number): string {
  return LEFT.has(column) ? text.padEnd(width) : text.padStart(width)
}
