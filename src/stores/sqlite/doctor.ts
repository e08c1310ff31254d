/** What can be wrong with an SQLite file: see `../doctor.ts`. Changes nothing, on a connection of its own. */
import { existsSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { MillpondError } from '../../values/errors/errors.ts'
import {
  countFindings,
  type Finding,
  leaseFinding,
  looked,
  MOST_COUNTED,
  notCounted,
  type SchemaState,
  STUCK,
} from '../examination.ts'
import { type Database, openDatabase } from './connection/database.ts'
import { readSchema } from './connection/migrate.ts'
import { columnOf, integer, type Row, text } from './connection/values.ts'
import { isBusy, isCorrupt, toMillpondError } from './errors.ts'
import { openedBy } from './openers.ts'
import { type Settings, settingsOf } from './settings.ts'

/** Types of file systems in which other machines may hold the file. */
const NETWORK: Readonly<Record<number, string>> = { 26985: 'NFS', 4283649346: 'CIFS', 4266872130: 'SMB2', 20859: 'SMB' }
const MEBIBYTE = 1024 * 1024
/** A log beyond this means that some reader keeps it from being taken over into the file. */
const LARGE_LOG = 256 * MEBIBYTE
/** Of a larger file, a check of it all would take long, and the disk from others. */
const MOST_READ = 1024 * MEBIBYTE
/** Share of free pages, and their bytes, from which on it is worth a VACUUM. */
const MUCH_FREE = { share: 0.5, bytes: 64 * MEBIBYTE }

/** @throws StoreUnavailable, StoreCorrupt, InvalidOption */
export async function examine(url: string): Promise<Finding[]> {
  const settings = settingsOf(url, {})
  return withFile(settings, async (db) => {
    const why = (error: unknown) => toMillpondError(error, settings.path).message
    const damage = unreadable(db, why)
    if (damage !== undefined) return [damage]
    const check = (name: string, look: () => Finding[]) => looked(name, look, why)
    const all = await Promise.all([
      check('version', () => versions(db)),
      check('writes', () => writes(db, why)),
      check('durability', () => durability(settings)),
      check('tables', () => tables(db)),
      check('integrity', () => integrity(db, settings)),
      check('leases', () => leases(db)),
      check('counts', () => counts(db)),
      check('bloat', () => bloat(db, settings)),
      check('fileSystem', () => fileSystem(settings)),
      check('libraries', () => libraries(settings)),
      check('access', () => access(settings)),
    ])
    return all.flat()
  })
}

export async function schemaState(url: string): Promise<SchemaState> {
  const settings = settingsOf(url, {})
  if (!existsSync(settings.path)) return { ...readSchema(undefined), isCurrent: false }
  return withFile(settings, async (db) => {
    const { found, newest } = readSchema(db)
    return { found, newest, isCurrent: found === newest }
  })
}

async function withFile<T>({ path, busyTimeout }: Settings, use: (db: Database) => Promise<T>): Promise<T> {
  if (!existsSync(path))
    throw new MillpondError('StoreUnavailable', `there is no SQLite file ${path}; look at the path`)
  let db: Database | undefined
  try {
    db = openDatabase(path, null)
    db.exec(`pragma busy_timeout = ${busyTimeout}; pragma query_only = on`)
    return await use(db)
  } catch (error) {
    throw toMillpondError(error, path)
  } finally {
    db?.close()
  }
}

const pragma = (db: Database, name: string): unknown => Object.values(db.prepare(`pragma ${name}`).get() ?? {})[0]

/** What makes all other checks idle. @throws the driver's own */
function unreadable(db: Database, why: (error: unknown) => string): Finding | undefined {
  try {
    pragma(db, 'schema_version')
    return undefined
  } catch (error) {
    if (!isCorrupt(error)) throw error
    const action = 'look at the path; if it is right, copy the file, then restore a backup'
    return { check: 'integrity', level: 'problem', text: why(error), action }
  }
}

function versions(db: Database): Finding[] {
  const sqlite = text(columnOf(db.prepare('select sqlite_version() as v').get(), 'v'))
  const { found, newest } = readSchema(db)
  const text_ = `SQLite ${sqlite}, tables of version ${found}`
  if (found === newest) return [{ check: 'version', level: 'ok', text: text_ }]
  if (found === 0) {
    const action = 'look at the path; millpond migrate makes the tables'
    return [{ check: 'version', level: 'problem', text: `SQLite ${sqlite}, without tables of Millpond`, action }]
  }
  const isNewer = found > newest
  return [
    {
      check: 'version',
      level: isNewer ? 'problem' : 'note',
      text: `${text_}; this Millpond makes version ${newest}`,
      action: isNewer ? 'upgrade this Millpond' : 'run millpond migrate, or open the store once',
    },
  ]
}

/** By a write that is rolled back: the mode of a file says nothing of its file system, nor of root. */
function writes(db: Database, why: (error: unknown) => string): Finding[] {
  try {
    db.exec('pragma query_only = off; begin immediate; create table millpond_doctor (n)')
  } catch (error) {
    // Another one writes, so the file can be written.
    if (!isBusy(error)) {
      const text = `the file cannot be written, so it takes no job: ${why(error)}`
      const action = 'let this user write file and folder, and mount the file system for writing'
      return [{ check: 'writes', level: 'problem', text, action }]
    }
  } finally {
    if (db.isTransaction) db.exec('rollback')
    db.exec('pragma query_only = on')
  }
  return [{ check: 'writes', level: 'ok', text: 'the file can be written' }]
}

function durability({ sync }: Settings): Finding[] {
  if (sync === 'full')
    return [{ check: 'durability', level: 'ok', text: 'sync=full: what is acknowledged is on the disk' }]
  const text = 'sync=normal: a power cut may lose the last moments of acknowledged pushes'
  return [{ check: 'durability', level: 'warning', text, action: 'use sync=full where that is too much' }]
}

function tables(db: Database): Finding[] {
  const { missing, changed } = readSchema(db)
  const of = (names: readonly string[]) => names.join(', ')
  if (missing.length > 0) {
    const action = 'restore the file from a backup; an index alone can be made as contract/sqlite/migrations has it'
    return [{ check: 'tables', level: 'problem', text: `missing: ${of(missing)}`, action }]
  }
  if (changed.length > 0) {
    const text = `other than the migrations make them: ${of(changed)}`
    return [
      {
        check: 'tables',
        level: 'warning',
        text,
        action: 'find out who changed them; put them back as contract/sqlite/migrations has them',
      },
    ]
  }
  return [{ check: 'tables', level: 'ok', text: 'all tables, indexes and views are there' }]
}

function integrity(db: Database, { path }: Settings): Finding[] {
  if (statSync(path).size > MOST_READ) {
    const text = 'the file is too large to be read as a whole here'
    return [{ check: 'integrity', level: 'note', text, action: 'run PRAGMA quick_check at a quiet time' }]
  }
  const found = text(pragma(db, 'quick_check(1)'))
  if (found === 'ok') return [{ check: 'integrity', level: 'ok', text: 'the quick check of SQLite finds nothing' }]
  return [
    {
      check: 'integrity',
      level: 'problem',
      text: 'the file is damaged',
      action: 'copy it, then restore a backup; PRAGMA integrity_check tells more',
    },
  ]
}

function leases(db: Database): Finding[] {
  const limit = Date.now() - STUCK
  const row = db
    .prepare("select count(*) as n from millpond_jobs where state = 'running' and lease_until < ?")
    .get(limit)
  return [leaseFinding(integer(columnOf(row, 'n')))]
}

const MISCOUNTED = `
  with counted as (select queue, name as state, count from millpond_counts where kind = 'state'),
    there as (select queue, state, count(*) as count from millpond_jobs group by queue, state)
  select queue, state, ifnull(counted.count, 0) as counted, ifnull(there.count, 0) as there
  from counted full join there using (queue, state) where counted <> there order by queue, state`

/** In one statement, which sees one state of the file. */
function counts(db: Database): Finding[] {
  const many = db.prepare('select 1 from millpond_jobs limit 1 offset ?').get(MOST_COUNTED) !== undefined
  const action = 'run the statement of docs/sqlite.md, "Emptied tables", in the file: it counts anew'
  if (many) return notCounted(`if stats and jobs disagree: ${action}`)
  const wrong = db.prepare(MISCOUNTED).all() as Row[]
  const miscounts = wrong.map((row) => ({
    queue: text(row.queue),
    state: text(row.state),
    counted: integer(row.counted),
    there: integer(row.there),
  }))
  return countFindings(miscounts, () => action)
}

function bloat(db: Database, { path }: Settings): Finding[] {
  const [pages, free, size] = ['page_count', 'freelist_count', 'page_size'].map((name) => integer(pragma(db, name)))
  const found: Finding[] = []
  const freeBytes = (free ?? 0) * (size ?? 0)
  const shown = (bytes: number) => `${Math.round(bytes / MEBIBYTE)} MiB`
  if (freeBytes > MUCH_FREE.bytes && (free ?? 0) > (pages ?? 0) * MUCH_FREE.share) {
    const text = `${shown(freeBytes)} of the file's ${shown((pages ?? 0) * (size ?? 0))} are free pages`
    found.push({
      check: 'bloat',
      level: 'note',
      text,
      action: 'VACUUM gives them back, at a quiet time; else they are used again',
    })
  }
  const log = statSync(`${realpathSync(path)}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (log > LARGE_LOG) {
    const text = `the write-ahead log has ${shown(log)}: some program has a read transaction open for long`
    found.push({
      check: 'bloat',
      level: 'warning',
      text,
      action: 'end that transaction; the log then becomes small again',
    })
  }
  return found.length > 0
    ? found
    : [{ check: 'bloat', level: 'ok', text: 'the file and its log are not larger than they need be' }]
}

function fileSystem({ path }: Settings): Finding[] {
  const kind = NETWORK[statfsSync(path).type]
  if (kind === undefined) return [{ check: 'fileSystem', level: 'ok', text: 'the file is on a local file system' }]
  const text = `the file is on ${kind}, where several machines can damage it`
  return [{ check: 'fileSystem', level: 'problem', text, action: 'put it on a local disk, or use PostgreSQL or Redis' }]
}

/** When one of two libraries of a process closes the file, the system drops the locks of the other: see `driver.ts`. */
function libraries({ path }: Settings): Finding[] {
  const openers = openedBy(`${realpathSync(path)}-shm`, process.pid)
  if (openers === undefined)
    return [{ check: 'libraries', level: 'note', text: 'only Linux tells which processes have the file open' }]
  const double = openers.filter(({ times }) => times > 1).map(({ pid }) => pid)
  if (double.length === 0) {
    const many = openers.length === 1 ? 'one other process has' : `${openers.length} other processes have`
    const text = `${many} the file open, with one SQLite library each, as far as this user can see`
    return [{ check: 'libraries', level: 'ok', text }]
  }
  const text = `process ${double.join(', ')} has the file open with two SQLite libraries, which can damage it`
  return [
    {
      check: 'libraries',
      level: 'problem',
      text,
      action: 'give the library of the code to the store as the option driver: docs/sqlite.md',
    },
  ]
}

function access({ path }: Settings): Finding[] {
  const { mode, uid } = statSync(path)
  const owner = process.getuid?.()
  const found: Finding[] = []
  if (process.platform !== 'win32' && (mode & 0o004) !== 0) {
    found.push({
      check: 'access',
      level: 'note',
      text: 'every user of the machine can read the file',
      action: `chmod o-rwx ${path}, if jobs hold what others must not see`,
    })
  }
  if (owner !== undefined && owner !== 0 && uid !== owner) {
    found.push({
      check: 'access',
      level: 'note',
      text: 'the file belongs to another user than the one of this process',
    })
  }
  return found.length > 0 ? found : [{ check: 'access', level: 'ok', text: 'the rights of the file are narrow' }]
}
