/** Tables for people: the first column to the left, the others to the right. */
import { styled, type Terminal } from './terminal.ts'

export function table(terminal: Terminal, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  return [styled(terminal, 'out', 'bold', line(heads)), ...rows.map(line), ''].join('\n')
}
