/**
 * Brings the tables up to date, in one transaction. Any number of processes may do it at once: the first to get the lock does it, the others
 * then find it done.
 */
import { MillpondError } from '../../../values/errors.ts'
import { SQL_FILES } from '../sql-files.ts'
import type { Database } from './database.ts'
import { columnOf, integer } from './values.ts'
import { inTransaction, whileBusy } from './while-busy.ts'

/** In order. */
const MIGRATIONS = [...SQL_FILES].flatMap(([name, sql]) => {
  const number = /^migrations\/(\d{3})_/.exec(name)?.[1]
  return number === undefined ? [] : [{ version: Number(number), sql }]
})
const NEWEST = MIGRATIONS.at(-1)?.version ?? 0

/** `user_version` is the application's: our version is in a table of ours. */
function versionOf(db: Database): number {
  const table = db.prepare(`select 1 from sqlite_schema where type = 'table' and name = 'millpond_meta'`).get()
  if (table === undefined) return 0
  return integer(columnOf(db.prepare(`select value from millpond_meta where key = 'version'`).get(), 'value') ?? 0)
}

/** @throws StoreVersion, and the driver's own */
export function migrate(db: Database, path: string, busyTimeout: number): void {
  const check = (version: number): number => {
    if (version <= NEWEST) return version
    const message = `${path} has tables of version ${version}, this Millpond knows up to ${NEWEST}: upgrade this process`
    throw new MillpondError('StoreVersion', message)
  }
  // Without the write lock first, as a process that opens a current file should wait for nobody. The first process to open
  // a file repairs its log, and even readers have to wait for that.
  if (check(whileBusy(busyTimeout, () => versionOf(db))) === NEWEST) return
  inTransaction(db, busyTimeout, () => {
    const version = check(versionOf(db))
    db.exec('create table if not exists millpond_meta (key text primary key, value any) strict, without rowid')
    for (const migration of MIGRATIONS) if (migration.version > version) db.exec(migration.sql)
    db.prepare(`insert into millpond_meta (key, value) values ('version', ?)
      on conflict do update set value = excluded.value`).run(NEWEST)
  })
}
