/**
 * Errors of drivers, servers and the platform, made safe to throw, to log and to inspect.
 *
 * Such an error may carry what the failed call was given: parameters, a connection's settings, the row that broke a
 * constraint. `safeError` copies what only names things (name, code, constraint, message, stack) and drops all other
 * properties. It also masks the parts of messages that are known to repeat input.
 */

import { isError } from '../runtime/realms.ts'

/** Properties that name things and never hold values: those of Node and SQLite, of pg, and the same of postgres.js. */
const KEPT = [
  ...['code', 'errno', 'errcode', 'syscall', 'severity'],
  ...['schema', 'table', 'column', 'constraint'],
  ...['schema_name', 'table_name', 'column_name', 'constraint_name'],
]
const LONGEST_MESSAGE = 1000
const LONGEST_PROPERTY = 128
const DEEPEST_CAUSE = 4

const KINDS = [TypeError, RangeError, SyntaxError] as const
const QUOTED = /(["'`«»„“”‘’]).*["'`«»„“”‘’]/s

/**
 * What messages repeat of their input, wherever they come from. A message may be as long as a payload, so each pattern
 * takes linear time: it never looks at the same text again from another start.
 */
const MASKS: readonly (readonly [RegExp, string])[] = [
  // Redis, of a command that is unknown or renamed.
  [/,? with args beginning with:.*$/s, ''],
  // Deno.
  [/(Invalid URL): .*$/s, '$1'],
  // Node, of an argument of a wrong type.
  [/\b(Received type \w+) \(.*$/s, '$1'],
  // SQLite, of a text that was written into a statement.
  [/(unrecognized token: ).*$/s, '$1…'],
]

/** Errors of this module's making, which need no second copy. */
const safe = new WeakSet<object>()

/** A copy without what may hold a secret or a payload. Never throws. */
export function safeError(thrown: unknown): Error {
  try {
    return copied(thrown, 0)
  } catch {
    // Even a look at its class may throw: it is a proxy.
    return new Error('an error that cannot be read')
  }
}

/** The message of an error, without what may hold a secret or a payload. Never throws. */
export function safeText(thrown: unknown): string {
  return textOf(thrown, 0)
}

/** @param depth in errors of several others, which may hold themselves */
function textOf(thrown: unknown, depth: number): string {
  try {
    return isError(thrown) ? messageOf(thrown, depth) : 'something that is no error was thrown'
  } catch {
    return 'an error that cannot be read'
  }
}

/**
 * An error of the application's, as far as Millpond writes of it by itself: name, code and where it was thrown, such as
 * `TypeError at sendMail (file:///app/mail.ts:12:5)`. Its message may hold a payload, and is left out; that of a
 * MillpondError does not. Never throws.
 */
export function errorSummary(thrown: unknown): string {
  try {
    if (!isError(thrown)) return `a thrown ${thrown === null ? 'null' : typeof thrown}`
    const { code } = named(thrown)
    // Our own say what to do, and are safe as they are.
    if (thrown.name === 'MillpondError') return `${code}: ${thrown.message}`
    const frames = framesOf(thrown)
    const own = frames.find((frame) => !/node:|node_modules|\(<anonymous>\)/.test(frame)) ?? frames[0]
    const known = typeof code === 'string' && /^\w{1,64}$/.test(code) ? ` (${code})` : ''
    return `${nameOf(thrown)}${known}${own === undefined ? '' : ` ${own.trim()}`}`
  } catch {
    return 'an error that cannot be read'
  }
}

function copied(thrown: unknown, depth: number): Error {
  if (isError(thrown) && safe.has(thrown)) return thrown
  const message = safeText(thrown)
  const Kind = KINDS.find((kind) => thrown instanceof kind || isKind(thrown, kind.name)) ?? Error
  const copy: Error = new Kind(message)
  safe.add(copy)
  if (!isError(thrown)) return copy
  try {
    const name = nameOf(thrown)
    if (name !== copy.name) define(copy, 'name', name)
    define(copy, 'stack', [`${name}: ${message}`, ...framesOf(thrown)].join('\n'))
    for (const [property, value] of Object.entries(named(thrown))) Object.assign(copy, { [property]: value })
    const { cause } = thrown
    if (isError(cause) && depth < DEEPEST_CAUSE) define(copy, 'cause', copied(cause, depth + 1))
  } catch {
    // A getter of the error threw; what was copied so far has to do.
  }
  return copy
}

/** As errors have their own: writable, and not enumerable. */
function define(error: Error, property: string, value: unknown): void {
  Object.defineProperty(error, property, { value, writable: true, configurable: true, enumerable: false })
}

function named(error: Error): Record<string, string | number> {
  const found: Record<string, string | number> = {}
  for (const property of KEPT) {
    const value: unknown = Reflect.get(error, property)
    if (typeof value === 'number' || (typeof value === 'string' && value.length <= LONGEST_PROPERTY))
      found[property] = value
  }
  return found
}

function nameOf(error: Error): string {
  return typeof error.name === 'string' && /^[\w$.-]{1,64}$/.test(error.name) ? error.name : 'Error'
}

function messageOf(error: Error, depth: number): string {
  // A connection that was tried at several addresses: the message is empty, the attempts have their own.
  if (error.message === '' && isAggregate(error)) {
    if (depth === DEEPEST_CAUSE) return 'several errors'
    const texts = error.errors.slice(0, 4).map((one) => textOf(one, depth + 1))
    return cut(texts.join('; '))
  }
  if (error.name === 'DataCloneError') return 'a value could not be copied to another thread'
  let message = String(error.message)
  if (repeatsInput(error)) message = message.replace(QUOTED, '"…"')
  message = message.replace(/[^\s"'`]+/g, withoutCredentials)
  for (const [mask, instead] of MASKS) message = message.replace(mask, instead)
  return cut(message)
}

function cut(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE)}…`
}

/** Of a URL, without `user:password`. The last @ counts, since a password may hold one. */
function withoutCredentials(word: string): string {
  const begin = word.indexOf('://') + 3
  const end = word.lastIndexOf('@')
  return begin > 3 && end >= begin ? `${word.slice(0, begin)}…${word.slice(end)}` : word
}

/** JSON.parse quotes the text around the fault; PostgreSQL quotes the value in its data exceptions, SQLSTATE class 22. */
function repeatsInput(error: Error): boolean {
  return isKind(error, 'SyntaxError') || /^22[0-9A-Z]{3}$/.test(String(Reflect.get(error, 'code')))
}

/** By name, as each realm has classes of its own. */
const isKind = (error: unknown, name: string): boolean => isError(error) && error.name === name

const isAggregate = (error: Error): error is AggregateError => 'errors' in error && Array.isArray(error.errors)

/** The lines of the stack that name code; those before them repeat the message. */
function framesOf(error: Error): string[] {
  const stack = typeof error.stack === 'string' ? error.stack : ''
  const at = error.message === '' ? -1 : stack.indexOf(error.message)
  const rest = at < 0 ? stack : stack.slice(at + error.message.length)
  return rest.split('\n').filter((line) => /^\s+at /.test(line))
}
