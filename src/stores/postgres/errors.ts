/** What SQLSTATEs and the clients' own codes mean for our caller. https://www.postgresql.org/docs/current/errcodes-appendix.html */
import { type ErrorCode, MillpondError } from '../../values/errors.ts'
import { safeError, safeText } from '../../values/safe-error.ts'
import { isTlsError } from '../tls.ts'
import { isRow } from './connection/database.ts'

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

/** The connection was lost, or could not be made. */
const CONNECTION =
  /^(CONNECTION_|CONNECT_TIMEOUT|ECONN|EPIPE|ENOTFOUND|EAI_|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|SASL_)/

const ADVICE: Partial<Record<ErrorCode, string>> = {
  StoreUnavailable:
    'PostgreSQL cannot be reached or used: check the URL, the rights of its role, and that the server runs',
  StoreBusy: 'another transaction was in the way for too long; nothing was changed',
  StoreFull: 'the disk of the PostgreSQL server is full; nothing of the call was stored',
  StoreCorrupt: 'PostgreSQL reports damaged data: copy it, then restore a backup',
}

function codeIn(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** SQLSTATE, or the client's own code; empty: it has none. */
export const stateOf = codeIn

/** Whether the call may have taken effect although there was no answer. */
export function isLost(error: unknown): boolean {
  const code = codeIn(error)
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_|ENOENT|SASL_|CONNECT_TIMEOUT)/.test(code)) return false
  return CONNECTION.test(code) || /^(08|57P01|57P02)/.test(code) || isTerminated(error)
}

/** `pg` says so in words alone. The third is the client's own deadline: the server is silent. */
function isTerminated(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^Connection terminated|^Client has encountered a connection error|^Query read timeout$/.test(error.message)
  )
}

/** None of the pool's connections became free in time; `pg` says so in words alone. */
function isCrowded(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}

/** `pg` reports a server without TLS only by this message; there is no code. */
const WITHOUT_TLS = 'The server does not support SSL connections'

const TLS_ADVICE =
  'no TLS connection to PostgreSQL: its certificate must be trusted (sslrootcert, NODE_EXTRA_CA_CERTS) and be for the host of the URL; sslmode=disable goes without'

/** Whether the server is away for now, so that it is worth another try. */
export function isAway(error: unknown): boolean {
  const code = codeIn(error)
  return isLost(error) || /^(ECONNREFUSED|CONNECT_TIMEOUT|57P|ENOENT)/.test(code)
}

/** Whether the call did not even reach the server, or one that takes no writes: another server may take it. */
export function isElsewhere(error: unknown): boolean {
  return (
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_|ETIMEDOUT|57P03|25006|0A000|55000)/.test(codeIn(error)) ||
    (error instanceof Error && error.message === 'Connection terminated due to connection timeout')
  )
}

/** Undone by the server for the sake of another transaction: the same call can simply be made again. */
export function isUndone(error: unknown): boolean {
  return /^40/.test(codeIn(error))
}

/** The server has no such prepared statement any more, or its functions have changed since: the same call can be made again. */
export function isNotPrepared(error: unknown): boolean {
  return codeIn(error) === '26000' || (isRow(error) && error.routine === 'RevalidateCachedQuery')
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
  const state = codeIn(error)
  const message = safeText(error)
  if (isTlsError(error) || message === WITHOUT_TLS)
    return new MillpondError('StoreUnavailable', `${TLS_ADVICE} (${message})`, { cause: error })
  const code = codeOf(state, error)
  return new MillpondError(code, `${ADVICE[code] ?? 'PostgreSQL refused an operation'} (${message})`, { cause: error })
}

function codeOf(state: string, error: unknown): ErrorCode {
  if (CONNECTION.test(state) || isTerminated(error) || isCrowded(error)) return 'StoreUnavailable'
  return STATES[state] ?? STATES[state.slice(0, 3)] ?? STATES[state.slice(0, 2)] ?? 'StoreFailed'
}
