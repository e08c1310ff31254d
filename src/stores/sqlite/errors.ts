/**
 * What SQLite's result codes mean for our caller. Used in the thread and on connections of the caller's;
 * between the two threads an error travels as plain data, since a clone would lose its class and code.
 */
import { type ErrorCode, MillpondError } from '../../errors.ts'
import { safeText } from '../../safe-error.ts'

export interface WireError {
  code: ErrorCode
  message: string
  cause: { message: string; errcode: number | null } | null
}

/** Primary result codes, https://sqlite.org/rescode.html */
const PRIMARY: ReadonlyMap<number, ErrorCode> = new Map([
  [3, 'StoreUnavailable'], // PERM
  [5, 'StoreBusy'], // BUSY
  [6, 'StoreBusy'], // LOCKED
  [8, 'StoreUnavailable'], // READONLY
  [11, 'StoreCorrupt'], // CORRUPT
  [13, 'StoreFull'], // FULL
  [14, 'StoreUnavailable'], // CANTOPEN
  [26, 'StoreCorrupt'], // NOTADB
])

/**
 * Only ENOSPC becomes FULL in SQLite. A quota (EDQUOT), a limit on the size of files (EFBIG), and no room for growing the
 * `-shm` file are IOERR_WRITE (778), IOERR_TRUNCATE (1546) and IOERR_SHMSIZE (4874). For our caller they are the same.
 */
const NO_ROOM: ReadonlySet<number> = new Set([778, 1546, 4874])
const IOERR_CORRUPTFS = 8458

function codeOf(errcode: number): ErrorCode {
  if (NO_ROOM.has(errcode)) return 'StoreFull'
  if (errcode === IOERR_CORRUPTFS) return 'StoreCorrupt'
  return PRIMARY.get(errcode & 0xff) ?? 'StoreFailed'
}

const ADVICE: Partial<Record<ErrorCode, (path: string) => string>> = {
  StoreUnavailable: (path) =>
    `cannot open or write ${path}: check that the folder exists and that file and folder can be written`,
  StoreBusy: (path) => `another connection held the lock of ${path} for longer than busyTimeout; nothing was changed`,
  StoreFull: (path) =>
    `no room to write ${path}: the disk, a quota or a file size limit is reached (or the disk fails); nothing of the call was stored`,
  StoreCorrupt: (path) => `${path} is damaged or not an SQLite database: copy it, then restore a backup`,
}

/** The extended result code of an error of node:sqlite, or null. */
function errcodeOf(error: unknown): number | null {
  if (!(error instanceof Error)) return null
  return 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : null
}

export function toMillpondError(error: unknown, path: string): MillpondError {
  if (error instanceof MillpondError) return error
  const message = safeText(error)
  const errcode = errcodeOf(error)
  const code = errcode === null ? codeByName(error) : codeOf(errcode)
  const advice = ADVICE[code]?.(path) ?? `SQLite refused an operation on ${path}`
  return new MillpondError(code, `${advice} (${message})`, { cause: error })
}

/** better-sqlite3 gives names such as SQLITE_BUSY_SNAPSHOT in `code`. */
function codeByName(error: unknown): ErrorCode {
  const name = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^SQLITE_(BUSY|LOCKED)/.test(name)) return 'StoreBusy'
  if (/^SQLITE_(FULL|IOERR_WRITE|IOERR_TRUNCATE|IOERR_SHMSIZE)/.test(name)) return 'StoreFull'
  if (/^SQLITE_(CORRUPT|NOTADB|IOERR_CORRUPTFS)/.test(name)) return 'StoreCorrupt'
  return /^SQLITE_(READONLY|CANTOPEN|PERM)/.test(name) ? 'StoreUnavailable' : 'StoreFailed'
}

export function toWire(error: unknown, path: string): WireError {
  const { code, message, cause } = toMillpondError(error, path)
  if (!(cause instanceof Error)) return { code, message, cause: null }
  return { code, message, cause: { message: cause.message, errcode: errcodeOf(cause) } }
}

export function fromWire({ code, message, cause }: WireError): MillpondError {
  if (cause === null) return new MillpondError(code, message)
  const original = Object.assign(new Error(cause.message), cause.errcode === null ? {} : { errcode: cause.errcode })
  return new MillpondError(code, message, { cause: original })
}
