/** What Redis' errors mean for our caller, and which of them pass by themselves. */

import { type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import { isError } from '../../values/runtime/realms.ts'

const message = (error: unknown): string => (isError(error) ? error.message : String(error))

export const isNoScript = (error: unknown): boolean => message(error).startsWith('NOSCRIPT')

/** The server's own, as against one of the connection or the client. */
export const isReply = (error: unknown): boolean => isError(error) && error.name === 'ReplyError'

/** The hash slot is another node's by now. */
export const isMoved = (error: unknown): boolean => message(error).startsWith('MOVED')

/** Answers that a server gives for a while: it loads, changes its role, or its cluster is choosing a master; and lost connections. */
const PASSING = new RegExp(
  [
    '^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|BUSY |UNBLOCKED|MOVED|ASK)',
    'Connection is closed|Command aborted due to connection close|Command timed out|Socket timeout',
    "No master node is available|Node is disconnected|isn't writeable|isn't ready|Failed to refresh slots",
    'Too many Cluster redirections|max retries per request|None of startup nodes|All sentinels are unreachable',
    'ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH',
  ].join('|'),
  'i',
)

export const isPassing = (error: unknown): boolean => PASSING.test(message(error))

/** Passing errors of which it is sure that the call did nothing: the server refused it before it ran, or it was never sent. */
const UNDONE =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|BUSY |MOVED|ASK)|isn't writeable|isn't ready|None of startup nodes/i

export const isUndone = (error: unknown): boolean => UNDONE.test(message(error))

/** An argument over `proto-max-bulk-len`, or too many of them: the server has read no further, and closes the connection. */
const isTooLong = (text: string): boolean => /Protocol error: (invalid bulk length|invalid multibulk length)/.test(text)

function codeOf(text: string): ErrorCode {
  // The server refuses such a script on its first write, so that nothing of it was done.
  if (/^(OOM|MISCONF)|-OOM|out of memory/i.test(text)) return 'StoreFull'
  if (/^BUSY /.test(text)) return 'StoreBusy'
  if (/^(NOAUTH|WRONGPASS|NOPERM|ERR AUTH|ERR invalid password)/i.test(text)) return 'StoreUnavailable'
  if (isTooLong(text)) return 'PayloadTooLarge'
  return PASSING.test(text) ? 'StoreUnavailable' : 'StoreFailed'
}

const ADVICE: Partial<Record<ErrorCode, string>> = {
  PayloadTooLarge: 'an argument of the call is over proto-max-bulk-len of Redis; nothing of the call was stored',
  StoreFull: 'Redis has no room (maxmemory) or cannot save to its disk; nothing of the call was stored',
  StoreBusy: 'Redis is busy with a script of someone else',
  StoreUnavailable:
    'Redis cannot be reached or refuses us; a call without an answer may have taken effect, and a push can be repeated safely',
}

export function toMillpondError(error: unknown, where: string): MillpondError {
  if (error instanceof MillpondError) return error
  const code = codeOf(message(error))
  const text = `${ADVICE[code] ?? 'Redis refused an operation'}: ${where}: ${safeText(error)}`
  return new MillpondError(code, text, { cause: error })
}

/** Where the connection ended before the client could read it. */
export const tooLong = (where: string): MillpondError =>
  toMillpondError(new Error('Protocol error: invalid bulk length'), where)

export function closed(): MillpondError {
  return new MillpondError('Closed', 'The Redis store is closed; open a new one to go on.')
}
