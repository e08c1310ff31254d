/** A text that stands for a secret or a payload, and everything by which an error could show it: what Node prints, logs and warns. */
import assert from 'node:assert/strict'
import buffer from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { isMillpondError, MillpondError } from '../../src/values/errors/errors.ts'

/** Of letters alone, so that no escape changes it. */
export const CANARY = 'zqCanary'

/** The canary's bytes as inspected buffers and encodings show them. */
export const FORMS: readonly string[] = [CANARY, ...bytesOf(CANARY), ...base64Of(CANARY)]

function bytesOf(text: string): string[] {
  const bytes = [...Buffer.from(text)]
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0'))
  return [hex.join(''), hex.join(' '), bytes.join(','), bytes.join(', ')]
}

/** Base64 of it at each of the three places where it may begin; the characters that its neighbours have a part in are left out. */
function base64Of(text: string): string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(`${'\0'.repeat(shift)}${text}\0\0`).toString('base64')
    const from = Math.ceil((shift * 8) / 6)
    return encoded.slice(from, Math.floor(((shift + text.length) * 8) / 6))
  })
}

// Else 50 bytes of a buffer are shown.
buffer.INSPECT_MAX_BYTES = Number.POSITIVE_INFINITY

const DEEP = {
  depth: Number.POSITIVE_INFINITY,
  showHidden: true,
  maxArrayLength: Number.POSITIVE_INFINITY,
  maxStringLength: Number.POSITIVE_INFINITY,
  breakLength: Number.POSITIVE_INFINITY,
  getters: true,
} as const

/** All texts by which the value could be told. @param depth of causes */
function texts(value: unknown, depth = 0): string[] {
  const all = [inspect(value, DEEP), String(value)]
  try {
    all.push(JSON.stringify(value) ?? '')
  } catch {
    // It refers to itself: nobody can write it as JSON.
  }
  if (value instanceof Error) {
    // By their names too, as a log that walks an error would.
    for (const name of [...Object.getOwnPropertyNames(value), 'message', 'stack', 'code', 'cause'])
      all.push(inspect(Reflect.get(value, name), DEEP))
    if (value.cause !== undefined && depth < 10) all.push(...texts(value.cause, depth + 1))
  }
  return all
}

export function assertClean(value: unknown, what: string): void {
  for (const text of texts(value)) {
    const form = FORMS.find((one) => text.includes(one))
    if (form !== undefined) assert.fail(`${what} shows the canary (as ${form}):\n${text.slice(0, 4000)}`)
  }
}

/** What a process writes by itself while something runs: warnings, the console, stdout and stderr. */
export async function written<T>(run: () => Promise<T>): Promise<{ value: T; lines: string[] }> {
  const lines: string[] = []
  const warned = (warning: Error) => void lines.push(inspect(warning, DEEP))
  const { write } = process.stderr
  const { error, warn, log } = console
  const keep = (...args: unknown[]) =>
    void lines.push(args.map((arg) => (typeof arg === 'string' ? arg : inspect(arg, DEEP))).join(' '))
  process.on('warning', warned)
  process.stderr.write = (chunk: string | Uint8Array) => {
    lines.push(String(chunk))
    return true
  }
  Object.assign(console, { error: keep, warn: keep, log: keep })
  try {
    const value = await run()
    // Warnings come a tick later.
    await setImmediate()
    return { value, lines }
  } finally {
    process.off('warning', warned)
    process.stderr.write = write
    Object.assign(console, { error, warn, log })
  }
}

/** An error path: it must fail, with an error of ours unless `foreign`, and neither the error nor what is written may show the canary. */
export async function fails(what: string, run: () => unknown, foreign = false): Promise<unknown> {
  const { value: thrown, lines } = await written(async () => {
    try {
      await run()
    } catch (error) {
      return error
    }
    return undefined
  })
  assert.ok(thrown !== undefined, `${what}: it was to fail`)
  assertClean(thrown, what)
  for (const line of lines) assertClean(line, `${what}, on stderr`)
  if (!foreign) assert.ok(isMillpondError(thrown), `${what}: a bare ${inspect(thrown)}`)
  return thrown
}

/** To see that the walk would find it. */
export function assertSeen(value: unknown): void {
  assert.throws(() => assertClean(value, 'it'), assert.AssertionError)
}

export { MillpondError }
