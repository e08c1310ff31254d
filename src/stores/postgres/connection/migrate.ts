/**
 * Brings the schema up to date. Everything happens in one transaction under an advisory lock, so any number of processes may
 * do it at once, also behind a pooler: the first does it, the others find it done.
 *
 * Tables change by numbered migrations alone, which never change once released. Functions are laid down anew wherever their
 * text differs, so that a fix needs no migration; a newer version's functions have a newer migration beside them, and stay.
 */
import { createHash } from 'node:crypto'
import { MillpondError } from '../../../values/errors.ts'
import { stateOf } from '../errors.ts'
import { SQL_FILES } from '../sql-files.ts'
import type { Database } from './database.ts'

function contract() {
  const isMigration = (name: string) => name.startsWith('migrations/')
  const files = [...SQL_FILES]
  // In order; the first is number 1.
  const migrations = files.filter(([name]) => isMigration(name)).map(([, text]) => text)
  // The others call what is shared; the last takes care of rights.
  const rank = (name: string) => (name === 'shared.sql' ? 0 : name === 'roles.sql' ? 2 : 1)
  const operations = files
    .filter(([name]) => !isMigration(name))
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([, text]) => text)
    .join('\n')
  return { migrations, operations, digest: createHash('sha256').update(operations).digest('hex') }
}

/** @returns `install`, which tells this installation from others of the same name @throws StoreVersion, StoreUnavailable, and the client's own */
export async function migrate(database: Database, schema: string): Promise<string> {
  const { migrations, operations, digest } = contract()
  const newest = migrations.length
  const [version, found, install] = await look(database, schema)
  checkVersion(version, newest, schema)
  if (version === newest && found === digest) return install
  const session = await database.begin('isolation level read committed')
  const named = (text: string) => text.replaceAll(/\bmillpond\b/g, schema)
  try {
    await session.run(`select pg_advisory_xact_lock(hashtext('${schema} migrate'), 1)`)
    const [[hasSchema, hasMeta] = []] = await session.run(
      `select to_regnamespace('${schema}') is not null, to_regclass('${schema}.meta') is not null`,
    )
    const [meta] = hasMeta === 't' ? await session.run(`select version from ${schema}.meta`) : []
    const from = Number(meta?.[0] ?? 0)
    checkVersion(from, newest, schema)
    const script = [
      'set local client_min_messages = warning;',
      // Only where it is missing: `if not exists` would ask for the right to make it first.
      hasSchema === 't' ? '' : `create schema ${schema};`,
      ...migrations.slice(from).map(named),
      named(operations),
      from === 0
        ? `insert into ${schema}.meta (version, operations, home) values (${newest}, '${digest}', ${schema}.here());`
        : `update ${schema}.meta set version = ${newest}, operations = '${digest}';`,
    ]
    await session.run(script.join('\n'))
    await session.end('commit')
  } catch (error) {
    await session.end('rollback').catch(() => {})
    if (stateOf(error) !== '42501') throw error
    // Whoever may use the functions need not be able to change them.
    if (version === newest) return install
    const message = `the schema ${schema} is not up to date, and this role may not change it: open it once with the role that owns it`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  }
  return (await look(database, schema))[2]
}

/** @returns version and digest of what is installed, and `install`; version 0: nothing, or not for this role */
async function look(database: Database, schema: string): Promise<[version: number, digest: string, install: string]> {
  const find = `select version, operations, install from json_to_record(${schema}.installed())
    as found(version integer, operations text, install text)`
  try {
    let [found] = await database.run(find)
    if (found?.[2] === null) {
      // Restored from a dump of another database.
      await database.run(`select ${schema}.adopt()`)
      ;[found] = await database.run(find)
    }
    return [Number(found?.[0] ?? 0), String(found?.[1]), String(found?.[2])]
  } catch (error) {
    // No schema, no function. Without rights on it the attempt to install says what to do.
    if (['3F000', '42883', '42501'].includes(stateOf(error))) return [0, '', '']
    throw error
  }
}

function checkVersion(version: number, newest: number, schema: string): void {
  if (version <= newest) return
  const message = `the schema ${schema} was migrated by a newer version of Millpond: upgrade this one`
  throw new MillpondError('StoreVersion', message)
}
