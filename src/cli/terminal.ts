/** Where the program writes: results to `out`, all else to `err`. */
import { styleText } from 'node:util'

export interface Terminal {
  env: Readonly<Record<string, string | undefined>>
  out(text: string): void
  err(text: string): void
  /** Who calls, for the log of actions; `cli` unless set. */
  through?: 'cli' | 'mcp'
  /** Whether a person sees it at once. Unset: it goes into a pipe or a file, so it has no colours and no redrawn lines. */
  isTTY?: { out?: boolean; err?: boolean }
  /** Characters of a line; 80 unless set. */
  columns?: () => number | undefined
  /** Lines of the screen; 24 unless set. */
  rows?: () => number | undefined
  /** What comes in at the standard input, as text. Unset: nothing. */
  input?: () => AsyncIterable<string>
  /** Calls the listener for each key that a person presses, until the returned function is called. Unset: there is no keyboard. */
  keys?: (listener: (key: string) => void) => () => void
}

type Style = Parameters<typeof styleText>[0]

/** The text in a style where a person sees it; as it is in a pipe, with NO_COLOR, and on a dumb terminal. */
export function styled({ env, isTTY }: Terminal, where: 'out' | 'err', style: Style, text: string): string {
  const isPlain = isTTY?.[where] !== true || (env.NO_COLOR ?? '') !== '' || env.TERM === 'dumb'
  return isPlain ? text : styleText(style, text, { validateStream: false })
}
