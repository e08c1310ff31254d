/** What errors of RabbitMQ and of its client mean for our caller. */
import { type ErrorCode, MillpondError } from '../../values/errors.ts'
import { isError } from '../../values/realms.ts'
import { safeText } from '../../values/safe-error.ts'

const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error))

export const isMissing = (error: unknown): boolean => /NOT[_-]FOUND/.test(messageOf(error))

const LOST = /closed|closing|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|heartbeat|socket/i
const REFUSED = /ACCESS[_-]REFUSED|NOT[_-]ALLOWED|CONNECTION[_-]FORCED|handshake/i

const ADVICE: Partial<Record<ErrorCode, string>> = {
  StoreUnavailable:
    'RabbitMQ cannot be reached or refuses us; a call without an answer may have taken effect, so a push that is repeated may be stored twice',
  StoreFailed: 'RabbitMQ refused an operation',
  LeaseLost:
    'RabbitMQ took all running jobs of the queue back, since one was not acknowledged within its consumer_timeout; ' +
    'raise that in rabbitmq.conf above the longest handler',
}

export function toMillpondError(error: unknown, where: string): MillpondError {
  if (error instanceof MillpondError) return error
  const text = messageOf(error)
  const isLost = LOST.test(text) || REFUSED.test(text)
  const code = /acknowledgement.*timed out/.test(text) ? 'LeaseLost' : isLost ? 'StoreUnavailable' : 'StoreFailed'
  return new MillpondError(code, `${ADVICE[code]}: ${where}: ${safeText(error)}`, { cause: error })
}

export const closed = (): MillpondError =>
  new MillpondError('Closed', 'The RabbitMQ store is closed; open a new one to go on.')

export const blocked = (where: string, reason: string): MillpondError =>
  new MillpondError(
    'StoreFull',
    `RabbitMQ takes no messages until its alarm (${reason}) is over; nothing of the call was stored: ${where}`,
  )
