/** One line for each thing worth telling, for people or, as JSON, for programs. */

export type Fields = Readonly<Record<string, string | number>>

export class Log {
  readonly #write: (line: string) => void
  readonly #json: boolean
  /** When each kind of trouble was last told, and how often it came since. */
  readonly #troubles = new Map<string, { at: number; hidden: number }>()

  constructor(write: (line: string) => void, json: boolean) {
    this.#write = write
    this.#json = json
  }

  info(message: string, fields: Fields = {}): void {
    this.#line('info', message, fields)
  }

  /** The same one is told once in five seconds: a store that is away would fill the disk otherwise. */
  trouble(kind: string, message: string, fields: Fields = {}): void {
    const now = performance.now()
    const last = this.#troubles.get(kind)
    if (last !== undefined && now - last.at < 5000) {
      last.hidden++
      return
    }
    if (this.#troubles.size > 1000) this.#troubles.clear()
    this.#troubles.set(kind, { at: now, hidden: 0 })
    this.#line('error', message, last?.hidden ? { ...fields, hidden: last.hidden } : fields)
  }

  #line(level: 'info' | 'error', message: string, fields: Fields): void {
    const time = new Date().toISOString()
    if (this.#json) {
      this.#write(`${JSON.stringify({ time, level, message, ...fields })}\n`)
      return
    }
    const told = Object.entries(fields).map(
      ([name, value]) => ` ${name}=${typeof value === 'string' ? quoted(value) : value}`,
    )
    this.#write(`${time} ${level === 'error' ? 'error: ' : ''}${oneLine(message)}${told.join('')}\n`)
  }
}

function quoted(value: string): string {
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}

/** What others wrote may hold line ends, and what moves a terminal's cursor. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not get out
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
}
