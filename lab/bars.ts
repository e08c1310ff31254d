/** Bars that a figure has to clear, and figures as text. */

export interface Bar {
  text: string
  /** What was got, in the bar's own terms. */
  got: string
  cleared: boolean
  /** Missed by at most `SWAY`. */
  near: boolean
}

/** Figures of one machine sway by this share from run to run. */
const SWAY = 0.15

export function atLeast(got: number, least: number, unit = ''): Bar {
  return bar('≥', got, least, got >= least, got >= least * (1 - SWAY), unit)
}

export function atMost(got: number, most: number, unit = ''): Bar {
  return bar('≤', got, most, got <= most, got <= most * (1 + SWAY), unit)
}

function bar(sign: string, got: number, bound: number, cleared: boolean, held: boolean, unit: string): Bar {
  return {
    text: `${sign} ${bound < 1 ? bound : compact(bound)}${unit}`,
    got: `${compact(got)}${unit}`,
    cleared,
    near: held && !cleared,
  }
}

/** A bar such as "0 failed" is worth a word only when it is missed. */
export function isWorthAWord({ text, cleared }: Bar): boolean {
  return !cleared || !text.startsWith('≤ 0 ')
}

export function verdicts(bars: readonly Bar[]): string {
  return bars
    .filter(isWorthAWord)
    .map(({ text, got, cleared }) => `${cleared ? '✓' : '✗'} ${text} (${got})`)
    .join(', ')
}

/** Three significant digits, thousands as k. */
export function compact(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size >= 9.995e6) return `${(value / 1e6).toFixed(1)}M`
  if (size >= 99_950) return `${(value / 1e3).toFixed(0)}k`
  if (size >= 9_995) return `${(value / 1e3).toFixed(1)}k`
  if (size >= 1_000) return `${(value / 1e3).toFixed(2)}k`
  if (Number.isInteger(value)) return String(value)
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3)
}
