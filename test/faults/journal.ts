/** What one process has written down of its doings so far: whole lines of a file that grows, each read once. */

import { closeSync, existsSync, openSync, readSync } from 'node:fs'

/** Reading is synchronous, so one serves all. */
const chunk = Buffer.alloc(1 << 20)

export class Journal {
  readonly #path: string
  readonly #lines: string[] = []
  readonly #counts = new Map<string, number>()
  #offset = 0
  #rest = ''

  constructor(path: string) {
    this.#path = path
  }

  get lines(): readonly string[] {
    this.#read()
    return this.#lines
  }

  /** How many lines begin with that word. */
  count(word: string): number {
    this.#read()
    return this.#counts.get(word) ?? 0
  }

  #read(): void {
    if (!existsSync(this.#path)) return
    const file = openSync(this.#path, 'r')
    try {
      for (;;) {
        const bytes = readSync(file, chunk, 0, chunk.length, this.#offset)
        if (bytes === 0) return
        this.#offset += bytes
        // All that is written is ASCII, so that no character is cut.
        const lines = (this.#rest + chunk.toString('latin1', 0, bytes)).split('\n')
        this.#rest = lines.pop() ?? ''
        for (const line of lines) this.#add(line)
      }
    } finally {
      closeSync(file)
    }
  }

  #add(line: string): void {
    this.#lines.push(line)
    const word = line.slice(0, line.indexOf(' '))
    this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1)
  }
}
