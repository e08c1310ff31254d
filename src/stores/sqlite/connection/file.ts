/** The database's file: made, opened as the thread wants it, and its log. */
import { randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MillpondError } from '../../../values/errors/errors.ts'
import { toMillpondError } from '../errors.ts'
import type { Settings } from '../settings.ts'
import { type Database, openDatabase } from './database.ts'
import { Fences } from './fences.ts'
import { assertOneName, FileGuard, isShared } from './file-guard.ts'
import { LogRoom } from './log-room.ts'
import { migrate } from './migrate.ts'
import { Statements } from './statements.ts'
import { columnOf } from './values.ts'
import { whileBusy } from './while-busy.ts'

/** SQLite opens what it cannot write, and then says so only at the first write: here it is said at once. */
function checkAccess(path: string): void {
  const folder = dirname(path)
  const unavailable = (why: string, cause?: unknown): never => {
    throw new MillpondError('StoreUnavailable', `cannot open ${path}: ${why}`, { cause })
  }
  if (!existsSync(folder)) unavailable(`the folder ${folder} does not exist; create it`)
  if (existsSync(path) && statSync(path).isDirectory()) unavailable('it is a folder; name a file in it')
  try {
    // The folder too: SQLite keeps `-wal` and `-shm` files beside the database.
    accessSync(folder, constants.W_OK | constants.X_OK)
    if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    unavailable('file and folder must both be writable for this user; change their permissions', error)
  }
}

/** Read and written by its owner alone: jobs may hold what others on the machine are not to read. */
const PRIVATE = 0o600

/**
 * Makes the file, empty, with those rights; SQLite gives `-wal` and `-shm` the same. It is made under another name: to
 * close it under its own would drop the locks that another connection of this process may have on it by then. Where
 * this fails, SQLite makes the file, and says what is wrong.
 */
function createPrivate(path: string): void {
  const draft = `${path}.${randomUUID()}`
  try {
    closeSync(openSync(draft, 'wx', PRIVATE))
    try {
      linkSync(draft, path)
    } finally {
      rmSync(draft, { force: true })
    }
  } catch {
    // Another process was first, the file system has no links, or the disk is full.
  }
}

export interface Opened {
  db: Database
  guard: FileGuard
  fences: Fences
  logRoom: LogRoom
}

/** So that the garbage collector closes none of them. */
const leftOpen: Database[] = []

/** A crash between the two steps of `createPrivate` leaves the draft behind; another process may be between them right now. */
function removeDrafts(path: string): void {
  const file = statSync(path, { bigint: true })
  if (file.nlink <= 1n) return
  const prefix = `${basename(path)}.`
  const drafts = readdirSync(dirname(path)).filter(
    (name) => name.startsWith(prefix) && isDraft(name.slice(prefix.length)),
  )
  for (const draft of drafts.map((name) => join(dirname(path), name))) {
    const found = statSync(draft, { bigint: true, throwIfNoEntry: false })
    if (found?.ino === file.ino && found.dev === file.dev) rmSync(draft, { force: true })
  }
  assertOneName(path, statSync(path, { bigint: true }))
}

/** The other names of drafts are those of the Python library. */
const isDraft = (text: string): boolean => /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16})$/.test(text)

export function connect({ path, busyTimeout, module }: Settings): Opened {
  checkAccess(path)
  const isMissing = !existsSync(path)
  let db: Database | undefined
  try {
    if (isMissing) createPrivate(path)
    if (existsSync(path)) removeDrafts(path)
    // The last connection removes the log. After a crash it is still there. An empty one may be that of a client which is
    // just opening the file, and has not raised the floor of fences yet.
    const wasOpen =
      existsSync(path) && (statSync(`${realpathSync(path)}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
    const opened = openDatabase(path, module)
    db = opened
    // Where SQLite had to make it. Nothing is in it yet.
    if (isMissing) chmodSync(path, PRIVATE)
    // `whileBusy` does the waiting.
    opened.exec('pragma busy_timeout = 0')
    const mode = whileBusy(busyTimeout, () =>
      columnOf(opened.prepare('pragma journal_mode = wal').get(), 'journal_mode'),
    )
    if (mode !== 'wal') {
      throw new MillpondError('StoreUnavailable', `${path} cannot use a write-ahead log: put it on a local disk`)
    }
    opened.exec(`
      pragma synchronous = normal;
      pragma cache_size = -16384;
      pragma temp_store = memory;
    `)
    // The first read opens the log. Before the first write, the guard looks who else has it open.
    whileBusy(busyTimeout, () => opened.prepare('select count(*) from sqlite_schema').get())
    const guard = new FileGuard(path)
    const isNew = migrate(opened, { path, module, busyTimeout })
    const fences = new Fences(new Statements(opened), path)
    fences.open(opened, busyTimeout, isNew ? 'new' : wasOpen ? 'open' : 'unknown')
    return { db: opened, guard, fences, logRoom: new LogRoom(opened, path) }
  } catch (error) {
    if (db !== undefined && isShared(error)) leftOpen.push(db)
    else db?.close()
    throw toMillpondError(error, path)
  }
}

/**
 * The write-ahead log, to bring commits to the disk with `fdatasync`. With `synchronous = full` SQLite would make the same call
 * within each commit, and every answer would wait for it. Here SQLite commits without, and answers that need no disk go first.
 *
 * The file stays the same while a connection is open: SQLite overwrites the log from its beginning, and removes it after the
 * last connection. Its locks are on the database and the `-shm` file, so closing this descriptor releases none.
 * @param path of a database with an open connection; SQLite keeps the log beside the file that a link leads to
 */
export function openLog(path: string): number {
  // For writing too, without which Windows would not flush it.
  return openSync(`${realpathSync(path)}-wal`, 'r+')
}
