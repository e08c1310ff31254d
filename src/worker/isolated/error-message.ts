/** Errors and outcomes on their way from one process to another. */
import { ERROR_CODES, type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { isError } from '../../values/runtime/realms.ts'
import { isOutcome, Outcome } from '../outcome.ts'
import type { AnswerMessage, ErrorMessage } from './messages.ts'

/** Characters: what stores keep of an error is shorter. */
const LONGEST_MESSAGE = 8000
const LONGEST_STACK = 16_000
const DEEPEST_CAUSE = 4

/** What is copied of anything that was thrown: name, message, stack, code and cause. Never throws. */
export function errorMessage(thrown: unknown, depth = 0): ErrorMessage {
  try {
    if (!isError(thrown)) return nonError(thrown)
    const code: unknown = Reflect.get(thrown, 'code')
    const { cause } = thrown
    return {
      name: String(thrown.name).slice(0, LONGEST_MESSAGE),
      message: String(thrown.message).slice(0, LONGEST_MESSAGE),
      stack: typeof thrown.stack === 'string' ? thrown.stack.slice(0, LONGEST_STACK) : undefined,
      code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
      cause: isError(cause) && depth < DEEPEST_CAUSE ? errorMessage(cause, depth + 1) : undefined,
    }
  } catch {
    return { ...nonError(undefined), message: 'threw something that cannot be shown' }
  }
}

/** As `jobError` puts it, which is all that is kept of it. */
function nonError(thrown: unknown): ErrorMessage {
  const text = typeof thrown === 'object' && thrown !== null ? (JSON.stringify(thrown) ?? 'an object') : String(thrown)
  const message = `threw a non-error: ${text.slice(0, LONGEST_MESSAGE)}`
  return { name: 'NonError', message, stack: undefined, code: undefined, cause: undefined }
}

/** The error again. One of this library's is a MillpondError, though another copy of the library has made it. */
export function errorOf({ name, message, stack, code, cause }: ErrorMessage): Error {
  const details = cause === undefined ? {} : { cause: errorOf(cause) }
  const error =
    name === 'MillpondError' && isErrorCode(code)
      ? new MillpondError(code, message, { thrown: details.cause })
      : Object.assign(new Error(message, details), code === undefined ? {} : { code })
  if (error.name !== name) define(error, 'name', name)
  define(error, 'stack', stack)
  return error
}

/** As errors have their own: writable, and not enumerable. */
function define(error: Error, property: string, value: unknown): void {
  Object.defineProperty(error, property, { value, writable: true, configurable: true, enumerable: false })
}

const isErrorCode = (code: unknown): code is ErrorCode => ERROR_CODES.some((known) => known === code)

/** @param thrown anything that can be thrown, or an Outcome */
export function failureMessage(thrown: unknown): AnswerMessage {
  if (!isOutcome(thrown)) return { is: 'error', error: errorMessage(thrown) }
  const { kind, delay, cause, message } = thrown
  return { is: 'outcome', kind, delay: delay ?? 0, reason: isError(cause) ? errorMessage(cause) : message }
}

export function outcomeOf({ kind, delay, reason }: Extract<AnswerMessage, { is: 'outcome' }>): Outcome {
  if (kind === 'rateLimited') return Outcome.rateLimited(delay)
  const given = typeof reason === 'string' ? reason : errorOf(reason)
  return kind === 'retry' ? Outcome.retry(delay, given) : Outcome.giveUp(given)
}
