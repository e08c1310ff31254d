/** What errors of RabbitMQ and of its client mean for our caller. */
import { type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import { isError } from '../../values/runtime/realms.ts'
import { isTlsError } from '../tls.ts'

const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error))

export const isMissing = (error: unknown): boolean => /NOT[_-]FOUND/.test(messageOf(error))

/** We may not have it: it is another's alone, or we lack the right. */
export const isDenied = (error: unknown): boolean =>
  /ACCESS[_-]REFUSED|RESOURCE[_-]LOCKED/.test(messageOf(error) + messageOf(isError(error) ? error.cause : ''))

const LOST =
  /closed|closing|channel ended|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|heartbeat|socket|no answer/i
const REFUSED = /ACCESS[_-]REFUSED|NOT[_-]ALLOWED|CONNECTION[_-]FORCED|handshake|NOT[_-]FOUND/i

const ADVICE: Partial<Record<ErrorCode, string>> = {
  StoreUnavailable:
    'RabbitMQ cannot be reached or refuses us; a call without an answer may have taken effect, ' +
    'and a push that is repeated may be stored twice',
  LeaseLost:
    'RabbitMQ took the running jobs of the queue back, because one was not acknowledged within its consumer_timeout; ' +
    'raise it in rabbitmq.conf above the longest handler',
}

function codeOf(error: unknown): ErrorCode {
  const text = messageOf(error)
  if (/acknowledgement.*timed out/.test(text)) return 'LeaseLost'
  return LOST.test(text) || REFUSED.test(text) || isTlsError(error) ? 'StoreUnavailable' : 'StoreFailed'
}

export function toMillpondError(error: unknown, where: string): MillpondError {
  if (error instanceof MillpondError) return error
  const code = codeOf(error)
  const text = `${isTlsError(error) ? CERTIFICATE : (ADVICE[code] ?? 'RabbitMQ refused an operation')}: ${where}: ${safeText(error)}`
  return new MillpondError(code, text, { cause: error })
}

const CERTIFICATE =
  'no TLS connection to RabbitMQ: its certificate must be trusted (NODE_EXTRA_CA_CERTS) and be for that host'

export const closed = (): MillpondError =>
  new MillpondError('Closed', 'The RabbitMQ store is closed; open a new one to go on.')

export const blocked = (where: string, reason: string): MillpondError =>
  new MillpondError(
    'StoreFull',
    `RabbitMQ takes no messages until its alarm (${reason}) is over; nothing of the call was stored: ${where}`,
  )

export const tooLarge = (where: string): MillpondError =>
  new MillpondError(
    'PayloadTooLarge',
    `a job is over the max_message_size of RabbitMQ, and was not stored; push a reference, or raise the limit in rabbitmq.conf: ${where}`,
  )
