/**
 * Live progress: in a terminal a block of lines, redrawn in place; elsewhere (a file, CI) a line every two seconds.
 * Events, such as the SIGKILL, are lines that stay.
 */
import { styleText } from 'node:util'
import type { Scene } from './run.ts'

const BAR = 30
/** What a line of the block takes at the most: one that wrapped would spoil the redrawing. */
const WIDTH = 76
const terminal = process.stdout.isTTY === true && process.stdout.columns >= WIDTH

export class Progress {
  #scene: Scene | undefined
  #drawn = 0
  #timer: NodeJS.Timeout | undefined

  begin(scene: Scene): void {
    this.#scene = scene
    if (terminal) process.stdout.write('\x1b[?25l')
    this.#timer = setInterval(() => this.#draw(), terminal ? 100 : 2000)
  }

  end(): void {
    clearInterval(this.#timer)
    this.#draw()
    this.#scene = undefined
    this.#drawn = 0
    this.restore()
  }

  /** Gives the cursor back. */
  restore(): void {
    if (terminal) process.stdout.write('\x1b[?25h')
  }

  event(kind: 'bad' | 'good', text: string): void {
    this.#write([kind === 'bad' ? styleText('red', `  ✗ ${text}`) : styleText('green', `  ✓ ${text}`)])
  }

  #draw(): void {
    if (terminal) this.#write([])
    else if (this.#scene !== undefined) console.log(line(this.#scene))
  }

  /** Lines that stay, above the block. All in one write, so that nothing flickers. */
  #write(lines: string[]): void {
    const back = this.#drawn > 0 ? `\x1b[${this.#drawn}A\x1b[J` : ''
    const drawn = terminal && this.#scene !== undefined ? block(this.#scene) : []
    this.#drawn = drawn.length
    process.stdout.write(back + [...lines, ...drawn].map((text) => `${text}\n`).join(''))
  }
}

/** Since the first request. */
export function elapsed({ startedAt }: Scene): string {
  if (startedAt === null) return 'starting'
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`
}

function line(scene: Scene): string {
  const { sent, requests, accepted, failed, waiting, running, mails } = scene
  const parts = [
    `sent ${sent}/${requests}`,
    `accepted ${accepted}`,
    ...(failed > 0 ? [`failed ${failed}`] : []),
    `${waiting} waiting`,
    `${running} under way`,
    `mails ${mails}`,
  ]
  return `  ${elapsed(scene).padStart(8)}  ${parts.join(' · ')}`
}

function block(scene: Scene): string[] {
  const { sent, requests, accepted, failed, waiting, running, mails } = scene
  const note = failed > 0 ? styleText('red', `  ${failed} failed`) : ''
  return [
    `  sent       ${bar(sent, requests, 'cyan')} ${share(sent, requests)}  ${styleText('dim', elapsed(scene))}`,
    `  accepted   ${bar(accepted, requests, 'blue')} ${share(accepted, requests)}${note}`,
    `  in queue   ${bar(waiting + running, requests, 'yellow')} ${waiting} waiting, ${running} under way`,
    `  mails out  ${bar(mails, requests, 'green')} ${share(mails, requests)}`,
  ]
}

function bar(value: number, most: number, colour: 'cyan' | 'blue' | 'yellow' | 'green'): string {
  const filled = Math.min(BAR, Math.floor((value / most) * BAR))
  return styleText(colour, '█'.repeat(filled)) + styleText('dim', '░'.repeat(BAR - filled))
}

function share(value: number, most: number): string {
  return `${String(value).padStart(String(most).length)}/${most}`
}
