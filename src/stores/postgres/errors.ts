/** What SQLSTATEs and the clients' own codes mean for our caller. https://www.postgresql.org/docs/current/errcodes-appendix.html */

import { type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { safeError, safeText } from '../../values/errors/safe-error.ts'
import { isError } from '../../values/runtime/realms.ts'
import { isTlsError } from '../tls.ts'

/** By SQLSTATE, or by its beginning. The first that fits counts. */
const CODES: readonly (readonly [ErrorCode, RegExp])[] = [
  // Our functions' own: refused at this isolation level.
  ['NotSupported', /^MP001/],
  // A character that the database's encoding lacks.
  ['PayloadNotEncodable', /^22P05/],
  ['PayloadTooLarge', /^MP002/],
  ['PayloadNotEncodable', /^MP003/],
  // An argument that our functions refuse; a value that our tables refuse.
  ['InvalidOption', /^(22023|23514)/],
  // A trigger or constraint of others, a value or a row that the server cannot keep. A key that is twice may be a race.
  ['StoreRefused', /^(22|23(?!505)|44|54(?!001)|P0)/],
  // A claim that was undone; a serialization failure, a deadlock, a lock that was not available; cancelled, as by statement_timeout.
  ['StoreBusy', /^(MP004|40001|40P01|55P03|57014)/],
  // The disk is full.
  ['StoreFull', /^53100/],
  // Data or an index is corrupted.
  ['StoreCorrupt', /^XX00[12]/],
  // The connection, the login, too many of them, the server's start or end, an unknown end of the call; no such database, schema or
  // function, or no right to it; a standby, which is read-only, has no unlogged tables and takes no such locks.
  ['StoreUnavailable', /^(08|28|53|57P|40003|3D000|3F000|42883|42501|25006|0A000|55000)/],
]

/** The clients' own codes: the connection was lost, or could not be made. */
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
  StoreRefused: 'PostgreSQL refuses these data: a trigger, a constraint or a limit of the database',
  StoreFull: 'the disk of the PostgreSQL server is full; nothing of the call was stored',
  StoreCorrupt: 'PostgreSQL reports damaged data: copy it, then restore a backup',
}
/** By SQLSTATE and message, where more can be said. */
const ADVICE_BY_STATE: readonly (readonly [RegExp, RegExp, string])[] = [
  [
    /^55000/,
    /replica identity/,
    'a publication has a table of Millpond whose rows it cannot tell apart: leave the schema out of it, or set a replica identity',
  ],
  [
    /^(3F000|42883)/,
    /./,
    'the schema of Millpond is not there, or was made by another version: open the pond anew, which installs it',
  ],
  [
    // Whatever language the server speaks.
    /^57014/,
    /./,
    'the server gave the call up at its deadline, three quarters of `timeout`, or was told to. It had too much to do, or waited',
  ],
  [/^MP004/, /./, 'the claim took longer than half its lease and was undone: its jobs still wait'],
  [/^25006/, /./, 'the transaction or the server is read-only'],
  [/^40003/, /./, 'the server does not know whether the call took effect'],
  [/^22P05/, /./, 'the encoding of the database has no such character: use a database in UTF8'],
]
const TLS_ADVICE =
  'no TLS connection to PostgreSQL: its certificate must be trusted (sslrootcert, NODE_EXTRA_CA_CERTS) and be for ' +
  'the host of the URL; sslmode=disable goes without'

/** `statement_completion_unknown`: neither done nor undone, as far as the server knows. */
const UNKNOWN_END = '40003'

/** SQLSTATE, or the client's own code; empty: it has none. */
export function stateOf(error: unknown): string {
  return isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

const messageOf = (error: unknown): string => (isError(error) ? error.message : '')

/** Whether the server is away for now, so that it is worth another try. */
export function isAway(error: unknown): boolean {
  const state = stateOf(error)
  return CONNECTION.test(state) || /^(08|57P)/.test(state) || TERMINATED.test(messageOf(error))
}

/**
 * Whether the call may have taken effect although there was no answer, as the server was there when it was sent; or although it was
 * refused, as the server does not know its end (40003).
 */
export function isLost(error: unknown): boolean {
  if (stateOf(error) === UNKNOWN_END) return true
  return isAway(error) && !/^(ECONNREFUSED|ENOTFOUND|EAI_|ENOENT|SASL_|CONNECT_TIMEOUT|57P03)/.test(stateOf(error))
}

/** Whether no connection was made, or one to a server that takes no writes: another server may do. */
export function isElsewhere(error: unknown): boolean {
  return (
    /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_|ETIMEDOUT|57P03|25006)/.test(stateOf(error)) ||
    messageOf(error) === CONNECT_TIMEOUT
  )
}

/**
 * Whether the same call can simply be made again: the server has undone it for the sake of another transaction, or the
 * connection has no such prepared statement any more (26000), as a handler may take them away.
 */
export function isUndone(error: unknown): boolean {
  return (
    /^(40(?!003)|26000)/.test(stateOf(error)) ||
    (isError(error) && 'routine' in error && error.routine === 'RevalidateCachedQuery')
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
  const advice = ADVICE_BY_STATE.find(([state, said]) => state.test(stateOf(error)) && said.test(messageOf(error)))
  if (advice !== undefined) return new MillpondError(codeOf(error), `${advice[2]} (${message})`, { cause: error })
  if (isTlsError(error) || message === WITHOUT_TLS)
    return new MillpondError('StoreUnavailable', `${TLS_ADVICE} (${message})`, { cause: error })
  const code = codeOf(error)
  return new MillpondError(code, `${ADVICE[code] ?? 'PostgreSQL refused an operation'} (${message})`, { cause: error })
}

function codeOf(error: unknown): ErrorCode {
  if (isAway(error) || messageOf(error) === CROWDED) return 'StoreUnavailable'
  const state = stateOf(error)
  if (state === '23514' && isError(error) && 'constraint' in error) {
    if (/^(payload|result)_too_large$/.test(String(error.constraint))) return 'PayloadTooLarge'
  }
  return CODES.find(([, states]) => states.test(state))?.[0] ?? 'StoreFailed'
}
