/** The screen that `top` draws on: the alternate one, so that what was there comes back. */
import { styled, type Terminal } from '../terminal.ts'
import type { FrameLine } from './frame.ts'

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[2J'
const LEAVE = '\x1b[?25h\x1b[?1049l'

export class Screen {
  readonly #terminal: Terminal

  constructor(terminal: Terminal) {
    this.#terminal = terminal
    terminal.out(ENTER)
  }

  /** Line over line, without clearing first, which would flicker. */
  draw(lines: readonly FrameLine[]): void {
    const text = lines.map(({ text, style }) => `${styledLine(this.#terminal, text, style)}\x1b[K`).join('\r\n')
    this.#terminal.out(`\x1b[H${text}\x1b[J`)
  }

  close(): void {
    this.#terminal.out(LEAVE)
  }
}

const styledLine = (terminal: Terminal, text: string, style: FrameLine['style']): string =>
  style === undefined || text === '' ? text : styled(terminal, 'out', style, text)
