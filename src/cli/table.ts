/** Tables for people: the first column to the left, the others to the right. */
import { styled, type Terminal } from './terminal.ts'

/** @param heads null: none */
export function table(
  terminal: Terminal,
  heads: readonly string[] | null,
  rows: readonly (readonly string[])[],
): string {
  const lines = heads === null ? rows : [heads, ...rows]
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  const head = heads === null ? [] : [styled(terminal, 'out', 'bold', line(heads))]
  return [...head, ...rows.map(line), ''].join('\n')
}
