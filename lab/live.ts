/** What a run shows in the terminal: one line that moves, and a line for each chapter and part that is over. */
import { styleText } from 'node:util'

const BAR = 24
const TICK = 250

export class Live {
  readonly #began = performance.now()
  readonly #expected: number
  readonly #timer: NodeJS.Timeout | undefined
  #done = 0
  #chapter = ''
  #chapterBegan = 0
  #chapterTakes = 0
  #what = ''

  /** @param expected seconds, of the whole run */
  constructor(expected: number) {
    this.#expected = expected
    if (process.stderr.isTTY) this.#timer = setInterval(() => this.#draw(), TICK)
  }

  begin(id: string, title: string, takes: number): void {
    this.#chapter = id
    this.#chapterBegan = performance.now()
    this.#chapterTakes = takes
    this.say(`\n${styleText('bold', `${id}  ${title}`)}  ${styleText('dim', `about ${words(takes)}`)}`)
  }

  tell(what: string): void {
    this.#what = what
    this.#draw()
  }

  /** A line that stays. */
  say(line: string): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
    process.stderr.write(`${line}\n`)
    this.#draw()
  }

  end(): void {
    this.#done += this.#chapterTakes
    this.#chapterTakes = 0
    this.#what = ''
  }

  close(): void {
    clearInterval(this.#timer)
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  }

  #draw(): void {
    if (!process.stderr.isTTY) return
    const now = performance.now()
    // A chapter that takes longer than expected does not move the bar past its own end.
    const own = Math.min((now - this.#chapterBegan) / 1000, this.#chapterTakes)
    const share = Math.min(1, (this.#done + own) / this.#expected)
    const filled = Math.round(share * BAR)
    const bar = styleText('cyan', '━'.repeat(filled)) + styleText('dim', '━'.repeat(BAR - filled))
    const left = Math.max(0, this.#expected - this.#done - own)
    const head = `${bar} ${words((now - this.#began) / 1000)}, about ${words(left)} left  ${this.#chapter}  `
    const room = (process.stderr.columns ?? 80) - plainLength(head) - 1
    process.stderr.write(`\r\x1b[K${head}${styleText('dim', this.#what.slice(0, Math.max(0, room)))}`)
  }
}

function words(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
}

function plainLength(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are escape sequences
  return text.replace(/\x1b\[[\d;]*m/g, '').length
}
