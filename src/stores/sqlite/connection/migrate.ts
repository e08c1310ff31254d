/**
 * Brings the tables up to date, in one transaction. Any number of processes may do it at once: the first to get the
 * lock does it, the others then find it done.
 *
 * Other programs empty or copy tables, too. Tables without a version (emptied, or copied without their rows) get theirs again if they are
 * what the migrations make. Missing or other tables are refused.
 */
import { MillpondError } from '../../../values/errors/errors.ts'
import { TABLES_MISSING } from '../errors.ts'
import { SQL_FILES } from '../sql-files.ts'
import { type Database, openDatabase } from './database.ts'
import { columnOf, integer, text } from './values.ts'
import { inTransaction, whileBusy } from './while-busy.ts'

/** In order. */
const MIGRATIONS = [...SQL_FILES].flatMap(([name, sql]) => {
  const number = /^migrations\/(\d{3})_/.exec(name)?.[1]
  return number === undefined ? [] : [{ version: Number(number), sql }]
})
const NEWEST = MIGRATIONS.at(-1)?.version ?? 0

/** Of the tables, indexes, views and triggers of ours: what each was made by. The table of the version is made before all migrations. */
function schemaOf(db: Database): Map<string, string> {
  const rows = db.prepare(`select name, sql from sqlite_schema where name glob 'millpond_*'`).all()
  return new Map(rows.map((row) => [text(columnOf(row, 'name')), text(columnOf(row, 'sql'))]))
}

/** As a new file has it. */
function schemaWanted(module: string | null): Map<string, string> {
  const db = openDatabase(':memory:', module)
  try {
    for (const { sql } of MIGRATIONS) db.exec(sql)
    return schemaOf(db)
  } finally {
    db.close()
  }
}

/** `user_version` is the application's: our version is in a table of ours. */
function versionOf(db: Database): number {
  const table = db.prepare(`select 1 from sqlite_schema where type = 'table' and name = 'millpond_meta'`).get()
  if (table === undefined) return 0
  return integer(columnOf(db.prepare(`select value from millpond_meta where key = 'version'`).get(), 'value') ?? 0)
}

/** What is there, and what is missing. It changes nothing. @param db undefined: there is no file */
export function readSchema(db: Database | undefined) {
  const found = db === undefined ? 0 : versionOf(db)
  const own = db === undefined ? new Map<string, string>() : schemaOf(db)
  const wanted = [...schemaWanted(null)]
  return {
    found,
    newest: NEWEST,
    missing: wanted.flatMap(([name]) => (own.has(name) ? [] : [name])),
    changed: wanted.flatMap(([name, sql]) => (own.has(name) && own.get(name) !== sql ? [name] : [])),
  }
}

interface File {
  path: string
  module: string | null
  busyTimeout: number
}

/** @returns whether the tables were made @throws StoreVersion, StoreCorrupt, and the driver's own */
export function migrate(db: Database, { path, module, busyTimeout }: File): boolean {
  const check = (version: number): number => {
    if (version <= NEWEST) return version
    const message = `${path} has tables of version ${version}, this Millpond knows up to ${NEWEST}: upgrade this process`
    throw new MillpondError('StoreVersion', message)
  }
  // Look first without the write lock, so that a process that opens a current file waits for nobody. It may be busy even so: the first
  // process that opens a file repairs its log, and readers must wait for that.
  const read = () => ({ version: check(versionOf(db)), found: schemaOf(db) })
  const { version, found } = whileBusy(busyTimeout, read)
  if (version === NEWEST) {
    if (found.size < schemaWanted(module).size) throw incomplete(path)
    return false
  }
  let isNew = false
  inTransaction(db, busyTimeout, () => {
    const now = read()
    if (now.version === NEWEST) return
    isNew = now.version === 0 && [...now.found.keys()].every((name) => name === 'millpond_meta')
    db.exec('create table if not exists millpond_meta (key text primary key, value any) strict, without rowid')
    if (now.version === 0 && !isNew) {
      for (const [name, sql] of schemaWanted(module)) if (now.found.get(name) !== sql) throw incomplete(path)
    } else {
      for (const migration of MIGRATIONS) if (migration.version > now.version) db.exec(migration.sql)
    }
    db.prepare(`insert into millpond_meta (key, value) values ('version', ?)
      on conflict do update set value = excluded.value`).run(NEWEST)
  })
  return isNew
}

const incomplete = (path: string) => new MillpondError('StoreCorrupt', `${path}: ${TABLES_MISSING}`)
