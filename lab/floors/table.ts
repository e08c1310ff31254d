/** The floors as one aligned table. */
import type { Bar } from '../bars.ts'
import type { Floor } from './part.ts'

export function mark({ cleared, near }: Bar): '✓' | 'near' | '✗' {
  return cleared ? '✓' : near ? 'near' : '✗'
}

export function table(floors: readonly Floor[]): string {
  const lines = [
    ['figure', 'floor', 'measured', ''],
    ...floors.map(({ figure, bar }) => [figure, bar.text, bar.got, mark(bar)]),
  ]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => (line[column] ?? '').length)))
  const text = lines.map((line) =>
    line
      .map((cell, column) =>
        column === 1 || column === 2 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
  text.splice(1, 0, widths.map((width) => '─'.repeat(width)).join('──'))
  return text.join('\n')
}
