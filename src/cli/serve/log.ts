/** The log of `millpond serve`: a line for each event, as text or JSON. */

export type Fields = Readonly<Record<string, string | number>>

export class Log {
  readonly #write: (line: string) => void
  readonly #json: boolean
  /** When each kind of error was last written, and how often it came since. */
  readonly #errors = new Map<string, { at: number; hidden: number }>()

  constructor(write: (line: string) => void, json: boolean) {
    this.#write = write
    this.#json = json
  }

  info(message: string, fields: Fields = {}): void {
    this.#line('info', message, fields)
  }

  /** Writes errors of one kind at most every five seconds: a store that is away would fill the disk otherwise. */
  error(kind: string, message: string, fields: Fields = {}): void {
    const now = performance.now()
    const last = this.#errors.get(kind)
    if (last !== undefined && now - last.at < 5000) {
      last.hidden++
      return
    }
    if (this.#errors.size > 1000) this.#errors.clear()
    this.#errors.set(kind, { at: now, hidden: 0 })
    this.#line('error', message, last?.hidden ? { ...fields, hidden: last.hidden } : fields)
  }

  #line(level: 'info' | 'error', message: string, fields: Fields): void {
    const time = new Date().toISOString()
    const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${quoted(String(value))}`)
    const text = `${time} ${level === 'error' ? 'error: ' : ''}${oneLine(message)}${shown.join('')}`
    this.#write(`${this.#json ? JSON.stringify({ time, level, message, ...fields }) : text}\n`)
  }
}

function quoted(value: string): string {
  return /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value)
}

/** Text of others may hold line ends, and codes that move a terminal's cursor. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not get out
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
}
