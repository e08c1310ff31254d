/**
 * Tables for people. What comes from jobs is untrusted: control characters are shown as escapes, so that no job can
 * drive the terminal. In a terminal a table is cut to its width; in a pipe nothing is cut.
 */
import { stripVTControlCharacters } from 'node:util'
import { styled, type Terminal } from './terminal.ts'

interface TableOptions {
  /** Columns of text, which stand to the left. The first column is one. The widest of them is cut if the table is too wide. */
  text?: readonly number[]
  /** Columns that are never cut, such as ids, which people copy. */
  whole?: readonly number[]
}

const GAP = '  '
/** A column of text is not cut below this. */
const LEAST = 8

/** @param heads null: none */
export function table(
  terminal: Terminal,
  heads: readonly string[] | null,
  rows: readonly (readonly string[])[],
  { text = [], whole = [] }: TableOptions = {},
): string {
  const lines = (heads === null ? rows : [heads, ...rows]).map((row) => row.map(plain))
  const most = width(terminal)
  const columns = Math.max(0, ...lines.map((row) => row.length))
  const all = Array.from({ length: columns }, (_, column) => Math.max(...lines.map((row) => row[column]?.length ?? 0)))
  const cuttable = [0, ...text].filter((column) => !whole.includes(column))
  const widths = fitted(all, cuttable, most)
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => {
        const wide = widths[column] ?? 0
        const shown = cut(cell, wide)
        return column === 0 || text.includes(column) ? shown.padEnd(wide) : shown.padStart(wide)
      })
      .join(GAP)
      .trimEnd()
  const shown = lines.map((cells) => cut(line(cells), most))
  const head = heads === null ? [] : [styled(terminal, 'out', 'bold', shown[0] ?? '')]
  return [...head, ...shown.slice(head.length), ''].join('\n')
}

/** Takes from the widest columns of text what is too much. */
function fitted(all: readonly number[], text: readonly number[], most: number): number[] {
  const widths = [...all]
  let over = widths.reduce((sum, one) => sum + one, 0) + GAP.length * (widths.length - 1) - most
  while (over > 0) {
    const wide = text.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))
    const [widest = 0, next] = wide
    const now = widths[widest] ?? 0
    const least = Math.max(LEAST, next === undefined ? 0 : (widths[next] ?? 0) - 1)
    const less = Math.min(over, Math.max(0, now - least))
    if (less === 0) break
    widths[widest] = now - less
    over -= less
  }
  return widths
}

function width({ isTTY, columns }: Terminal): number {
  return isTTY?.out === true ? (columns?.() ?? 80) : Number.POSITIVE_INFINITY
}

export const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1)).toWellFormed()}…`

/** Text on one line that a terminal shows and does not obey. Bidirectional controls would turn a line around. */
export function plain(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll(/\s*\r?\n\s*/g, ' ')
    .replaceAll(
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it takes away
      /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
      (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
}
