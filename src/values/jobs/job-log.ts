/**
 * Lines of a job's log: contract/operations.md, "The log of a job". To a store a line is a text; here it is written and read.
 */

import { isError } from '../runtime/realms.ts'
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { LAST_MOMENT } from '../time/duration.ts'

/** Bounds of a log: `lines`; `bytes` of all, with one more for each line. */
const { lines: MAX_LINES, bytes: MAX_BYTES, message: MAX_MESSAGE, fields: MAX_FIELDS } = DEFAULTS.log

/** What a handler has logged. */
export interface LogLine {
  /** By the store's clock, as the worker knows it; null: the line cannot be read. */
  at: Date | null
  /** Which attempt wrote it; null: the line cannot be read, or was written over HTTP, where a worker does not tell. */
  attempt: number | null
  /** Of a line that cannot be read: its text. */
  message: string
  /** As JSON keeps them; undefined: there were none. */
  fields: Record<string, unknown> | undefined
  /** The message was shortened, or the fields were left out, as they were too long or no JSON. */
  cut: boolean
}

/** Stands for fields that were left out already. */
export const LEFT_OUT: Readonly<Record<string, unknown>> = Object.freeze({})

/** What a line says beside its message. */
export interface LogPlace {
  /** Milliseconds since 1970. */
  at: number
  /** null: not known. */
  attempt: number | null
  /** Its number in the attempt, so that two lines with one message are two. */
  n: number
}

/** Never throws: what cannot be told is cut. */
export function logLine({ at, attempt, n }: LogPlace, message: unknown, fields?: unknown): string {
  const text = messageText(message)
  const isLong = text.length > MAX_MESSAGE
  const kept = fieldsJson(fields)
  const head = JSON.stringify({ at, attempt, n, message: isLong ? `${text.slice(0, MAX_MESSAGE)}…` : text })
  const tail = `${kept === undefined ? '' : `,"fields":${kept}`}${isLong || (kept === undefined && fields) ? ',"cut":true' : ''}`
  return wellFormedJson(`${head.slice(0, -1)}${tail}}`)
}

function messageText(message: unknown): string {
  try {
    return String(message)
  } catch {
    return 'a message that cannot be shown'
  }
}

/** undefined: there are none, they are too long, or they are no JSON. */
function fieldsJson(fields: unknown): string | undefined {
  if (typeof fields !== 'object' || fields === null || fields === LEFT_OUT) return undefined
  try {
    const json = JSON.stringify(isError(fields) ? { error: fields } : { ...fields }, plain)
    return json.length <= MAX_FIELDS ? json : undefined
  } catch {
    return undefined
  }
}

/** JSON has no big integers, and of an error it would keep nothing. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return isError(value) ? `${value.name}: ${value.message}` : value
}

/** Readers of other languages refuse the whole line for half of a surrogate pair, which JSON.stringify writes as an escape. */
const wellFormedJson = (json: string): string =>
  json.replaceAll(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd')

/** Never throws: a line that cannot be read is shown as its text. */
export function readLogLine(line: string): LogLine {
  const { at, attempt, message, fields, cut } = parsed(line)
  const hasAttempt = typeof attempt === 'number' || attempt === null
  if (typeof at !== 'number' || !hasAttempt || typeof message !== 'string') {
    return { at: null, attempt: null, message: line, fields: undefined, cut: false }
  }
  return {
    at: new Date(Math.min(Math.max(at, 0), LAST_MOMENT)),
    attempt,
    message,
    fields: objectOf(fields),
    cut: cut === true,
  }
}

function parsed(line: string): Record<string, unknown> {
  try {
    return objectOf(JSON.parse(line)) ?? {}
  } catch {
    return {}
  }
}

const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined

/** What a log is once lines were added: those that it has already are left out, and then the first ones, until the bounds hold. */
export function withLines(log: readonly string[], added: readonly string[]): string[] {
  const lines = [...new Set([...log, ...added])].slice(-MAX_LINES)
  let bytes = 0
  const first = lines.findLastIndex((line) => {
    bytes += sizeOf(line)
    return bytes > MAX_BYTES
  })
  return lines.slice(first + 1)
}

const sizeOf = (line: string): number => Buffer.byteLength(line) + 1

/** Lines of an attempt that the store has not confirmed, the last ones within the bounds of a log. */
export class UnsentLog {
  readonly #lines: string[] = []
  /** Of the lines, as MAX_BYTES counts them. */
  #bytes = 0
  /** How many lines the attempt has had. */
  #count = 0

  /** As they are now. */
  get lines(): readonly string[] {
    return [...this.#lines]
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  get count(): number {
    return this.#count
  }

  add(attempt: number, at: number, message: unknown, fields: unknown): void {
    const line = logLine({ at, attempt, n: ++this.#count }, message, fields)
    this.#lines.push(line)
    this.#bytes += sizeOf(line)
    while (this.#lines.length > MAX_LINES || this.#bytes > MAX_BYTES) this.#dropFirst()
  }

  /** @param count of lines, when those were sent that the store has now */
  sent(count: number): void {
    while (this.#lines.length > this.#count - count) this.#dropFirst()
  }

  clear(): void {
    while (!this.isEmpty) this.#dropFirst()
  }

  #dropFirst(): void {
    this.#bytes -= sizeOf(this.#lines.shift() ?? '')
  }
}
