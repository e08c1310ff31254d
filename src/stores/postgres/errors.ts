/** What SQLSTATEs and the clients' own codes mean for our caller. https://www.postgresql.org/docs/current/errcodes-appendix.html */
import { type ErrorCode, MillpondError } from '../../values/errors.ts'
import { safeError, safeText } from '../../values/safe-error.ts'
import { isTlsError } from '../tls.ts'

/** By SQLSTATE, or by its class. */
const STATES: Readonly<Record<string, ErrorCode>> = {
  '08': 'StoreUnavailable', // connection exception
  '28': 'StoreUnavailable', // invalid authorization
  '3D000': 'StoreUnavailable', // the database does not exist
  '3F000': 'StoreUnavailable', // the schema does not exist
  '42501': 'StoreUnavailable', // insufficient privilege
  '42883': 'StoreUnavailable', // a function does not exist
  '25006': 'StoreUnavailable', // read-only: a standby
  '0A000': 'StoreUnavailable', // not possible there: a standby has no unlogged tables
  '55000': 'StoreUnavailable', // a standby takes no such locks
  MP001: 'NotSupported', // our functions' own: refused at this isolation level
  '22023': 'InvalidOption', // an argument that our functions refuse
  '23514': 'InvalidOption', // a value that our tables refuse
  '40001': 'StoreBusy', // serialization failure
  '40P01': 'StoreBusy', // deadlock
  '55P03': 'StoreBusy', // lock not available
  '57014': 'StoreBusy', // cancelled, as by statement_timeout
  '53100': 'StoreFull', // disk full
  '53': 'StoreUnavailable', // too many connections, out of memory
  '57P': 'StoreUnavailable', // shutting down, starting up
  XX001: 'StoreCorrupt', // data corrupted
  XX002: 'StoreCorrupt', // index corrupted
}

/** The clients' own codes: the server could not be reached, so the call did not get there. */
const UNREACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_|ENOENT|SASL_|CONNECT_TIMEOUT)/
/** The same, or the connection was lost. */
const CONNECTION =
  /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|SASL_)/
/** `pg` says these in words alone. The third is the client's own deadline: the server is silent. */
const TERMINATED = /^Connection terminated|^Client has encountered a connection error|^Query read timeout$/
const CONNECT_TIMEOUT = 'Connection terminated due to connection timeout'
/** None of the pool's connections became free in time. */
const CROWDED = 'timeout exceeded when trying to connect'
/** There is a server, without TLS. */
const WITHOUT_TLS = 'The server does not support SSL connections'

const ADVICE: Partial<Record<ErrorCode, string>> = {
  StoreUnavailable:
    'PostgreSQL cannot be reached or used: check the URL, the rights of its role, and that the server runs',
  StoreBusy: 'another transaction was in the way for too long; nothing was changed',
  StoreFull: 'the disk of the PostgreSQL server is full; nothing of the call was stored',
  StoreCorrupt: 'PostgreSQL reports damaged data: copy it, then restore a backup',
}
const TLS_ADVICE =
  'no TLS connection to PostgreSQL: its certificate must be trusted (sslrootcert, NODE_EXTRA_CA_CERTS) and be for the host of the URL; sslmode=disable goes without'

/** SQLSTATE, or the client's own code; empty: it has none. */
export function stateOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '')

/** Whether the call may have taken effect although there was no answer. */
export function isLost(error: unknown): boolean {
  const state = stateOf(error)
  if (UNREACHED.test(state)) return false
  return CONNECTION.test(state) || /^(08|57P01|57P02)/.test(state) || TERMINATED.test(messageOf(error))
}

/** Whether the server is away for now, so that it is worth another try. */
export function isAway(error: unknown): boolean {
  return isLost(error) || /^(ECONNREFUSED|CONNECT_TIMEOUT|57P|ENOENT)/.test(stateOf(error))
}

/** Whether no connection was made, or one to a server that takes no writes: another server may do. */
export function isElsewhere(error: unknown): boolean {
  return (
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_|ETIMEDOUT|57P03|25006)/.test(stateOf(error)) ||
    messageOf(error) === CONNECT_TIMEOUT
  )
}

/**
 * Whether the same call can simply be made again: the server has undone it for the sake of another transaction, or the connection has no such
 * prepared statement any more (26000), as a handler may take them away.
 */
export function isUndone(error: unknown): boolean {
  return (
    /^(40|26000)/.test(stateOf(error)) ||
    (error instanceof Error && 'routine' in error && error.routine === 'RevalidateCachedQuery')
  )
}

/**
 * What a handler's own statement failed with: an error of the client's kind with its SQLSTATE in `code`, and the names of constraint, table
 * and column. Without `detail` and `where`, which quote rows, and without the statement and its parameters, which postgres.js adds.
 */
export function statementError(error: unknown): Error {
  return error instanceof MillpondError ? error : safeError(error)
}

export function toMillpondError(error: unknown): MillpondError {
  if (error instanceof MillpondError) return error
  const message = safeText(error)
  if (isTlsError(error) || message === WITHOUT_TLS)
    return new MillpondError('StoreUnavailable', `${TLS_ADVICE} (${message})`, { cause: error })
  const code = codeOf(error)
  return new MillpondError(code, `${ADVICE[code] ?? 'PostgreSQL refused an operation'} (${message})`, { cause: error })
}

function codeOf(error: unknown): ErrorCode {
  const state = stateOf(error)
  if (CONNECTION.test(state) || TERMINATED.test(messageOf(error)) || messageOf(error) === CROWDED)
    return 'StoreUnavailable'
  return STATES[state] ?? STATES[state.slice(0, 3)] ?? STATES[state.slice(0, 2)] ?? 'StoreFailed'
}
