/** Reports as aligned text. */
import { compact, type Report, type Row, ratio } from './row.ts'
import type { Summary } from './statistics.ts'

const HEAD = ['', 'Millpond', 'min – max', 'CPU µs', 'beside', '', 'min – max', 'CPU µs', 'ratio', 'bar']
const LEFT = new Set([0, 4, 9])
const CPU = new Set([3, 7])

export function table({ title, rows, notes }: Report): string {
  const withCpu = rows.some(({ cpu }) => cpu !== undefined)
  const cells = [HEAD, ...rows.flatMap(lines)].map((line) => line.filter((_, column) => withCpu || !CPU.has(column)))
  const left = HEAD.map((_, column) => LEFT.has(column)).filter((_, column) => withCpu || !CPU.has(column))
  const widths = left.map((_, column) => Math.max(...cells.map((line) => (line[column] ?? '').length)))
  const text = cells.map((line) =>
    line
      .map((cell, column) => (left[column] ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
  text.splice(1, 0, widths.map((width) => '─'.repeat(width)).join('──'))
  return [`\n${title}\n`, ...text, ...notes.map((note) => `  · ${note}`)].join('\n')
}

function lines({ name, unit, ours, cpu, rivals, bar }: Row): string[][] {
  const verdict =
    bar === undefined ? '' : `${bar.cleared ? '✓' : '✗'} ${bar.text}${bar.text.includes('×') ? ` (${bar.got})` : ''}`
  const own = [`${name}, ${unit}`, compact(ours.median), range(ours), microseconds(cpu)]
  if (rivals.length === 0) return [[...own, '', '', '', '', '', verdict]]
  return rivals.map((rival, index) => [
    ...(index === 0 ? own : ['', '', '', '']),
    rival.name,
    compact(rival.figure.median),
    range(rival.figure),
    microseconds(rival.cpu),
    `${compact(ratio(unit, ours, rival.figure))} ×`,
    index === 0 ? verdict : '',
  ])
}

function range({ min, max }: Summary): string {
  return min === max ? '' : `${compact(min)} – ${compact(max)}`
}

function microseconds(cpu: Summary | undefined): string {
  return cpu === undefined ? '' : compact(cpu.median)
}
