/**
 * What SQLite's result codes mean for our caller. Used in the thread and on connections of the caller's;
 * between the two threads an error travels as plain data, since a clone would lose its class and code.
 */

import { type ErrorCode, MillpondError } from '../../values/errors/errors.ts'
import { safeText } from '../../values/errors/safe-error.ts'
import { isError } from '../../values/runtime/realms.ts'

export interface WireError {
  code: ErrorCode
  message: string
  cause: { message: string; errcode: number | null } | null
}

/**
 * Result codes, https://sqlite.org/rescode.html: node:sqlite gives numbers, better-sqlite3 names. Only ENOSPC becomes FULL in
 * SQLite. A quota (EDQUOT), a limit on the size of files (EFBIG), and no room for growing the `-shm` file are the three IOERR.
 */
const RESULT_CODES: readonly [ErrorCode, Readonly<Record<string, number>>][] = [
  ['StoreFull', { FULL: 13, IOERR_WRITE: 778, IOERR_TRUNCATE: 1546, IOERR_SHMSIZE: 4874 }],
  ['StoreCorrupt', { CORRUPT: 11, NOTADB: 26, IOERR_CORRUPTFS: 8458 }],
  ['StoreUnavailable', { PERM: 3, READONLY: 8, CANTOPEN: 14 }],
  // The checks of sizes in the schema.
  ['PayloadTooLarge', { CONSTRAINT_CHECK: 275, TOOBIG: 18 }],
  // A trigger of others.
  ['StoreRefused', { CONSTRAINT_TRIGGER: 1811 }],
  ['StoreBusy', { BUSY: 5, LOCKED: 6 }],
]

const ADVICE: Partial<Record<ErrorCode, (path: string) => string>> = {
  StoreUnavailable: (path) =>
    `cannot open or write ${path}: check that the folder exists and that file and folder can be written`,
  StoreBusy: (path) => `another connection held the lock of ${path} for longer than busyTimeout; nothing was changed`,
  StoreRefused: (path) => `a trigger in ${path} refuses these data`,
  StoreFull: (path) =>
    `no room to write ${path}: the disk, a quota or a file size limit is reached (or the disk fails); nothing of the call was stored`,
  StoreCorrupt: (path) => `${path} is damaged or not an SQLite database: copy it, then restore a backup`,
}

/** An extended code, such as SQLITE_BUSY_SNAPSHOT, holds its primary one in the name's beginning and in the lowest byte. */
export function isResult(error: unknown, suffix: string, code: number): boolean {
  const number = errcodeOf(error)
  if (number !== null) return code === number || code === (number & 0xff)
  return isError(error) && 'code' in error && String(error.code).startsWith(`SQLITE_${suffix}`)
}

/** A table of ours was dropped. */
const lacksTable = (error: unknown): boolean => /no such (table|view|index): (main\.)?millpond_/.test(safeText(error))

/** For opening a file, and for calls on an open one. */
export const TABLES_MISSING =
  'tables of Millpond are missing or are others: restore a backup, or drop all that begin with millpond_ to begin anew'

function codeOf(error: unknown): ErrorCode {
  if (lacksTable(error)) return 'StoreCorrupt'
  const found = RESULT_CODES.find(([, results]) => Object.entries(results).some((result) => isResult(error, ...result)))
  return found?.[0] ?? 'StoreFailed'
}

export const isFull = (error: unknown): boolean => codeOf(error) === 'StoreFull'
export const isBusy = (error: unknown): boolean => codeOf(error) === 'StoreBusy'
export const isCorrupt = (error: unknown): boolean => codeOf(error) === 'StoreCorrupt'

/** The extended result code of an error of node:sqlite, or null. */
function errcodeOf(error: unknown): number | null {
  return isError(error) && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : null
}

export function toMillpondError(error: unknown, path: string): MillpondError {
  if (error instanceof MillpondError) return error
  const code = codeOf(error)
  const advice = lacksTable(error)
    ? `${path}: ${TABLES_MISSING}`
    : (ADVICE[code]?.(path) ?? `SQLite refused an operation on ${path}`)
  return new MillpondError(code, `${advice} (${safeText(error)})`, { cause: error })
}

export function toWire(error: unknown, path: string): WireError {
  const { code, message, cause } = toMillpondError(error, path)
  if (!isError(cause)) return { code, message, cause: null }
  return { code, message, cause: { message: cause.message, errcode: errcodeOf(cause) } }
}

export function fromWire({ code, message, cause }: WireError): MillpondError {
  if (cause === null) return new MillpondError(code, message)
  const original = Object.assign(new Error(cause.message), cause.errcode === null ? {} : { errcode: cause.errcode })
  return new MillpondError(code, message, { cause: original })
}
