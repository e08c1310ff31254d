/** Tables as the experiments print them. */
import type { Bar } from './bench/row.ts'

/** @param text heads of the columns that hold text; figures are set to the right */
export function markdown(
  head: readonly string[],
  lines: readonly string[][],
  text: readonly string[] = ['', 'bars'],
): string {
  const rule = head.map((name) => (text.includes(name) ? '---' : '---:'))
  return [head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** That nothing went wrong is not worth a word. */
export function verdicts(bars: readonly Bar[]): string {
  return bars
    .filter(({ text, cleared }) => !cleared || !text.startsWith('≤ 0 '))
    .map(({ text, got, cleared }) => `${cleared ? '✓' : '✗'} ${text} (${got})`)
    .join(', ')
}
