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
import type { Database, Row } from './database.ts'

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

/** What `meta` says. `install` tells this installation from others of the same name. */
function installedFrom([row]: readonly Row[]): { version: number; operations: string; install: string } {
  const { version, operations, install } = row ?? {}
  if (typeof version !== 'number' || typeof operations !== 'string' || typeof install !== 'string') {
    throw new MillpondError('StoreFailed', 'the schema is not one of Millpond: its table meta is empty')
  }
  return { version, operations, install }
}

function checkVersion(version: number, newest: number, schema: string): void {
  if (version <= newest) return
  const message = `the schema ${schema} was migrated by a newer version of Millpond: upgrade this one`
  throw new MillpondError('StoreVersion', message)
}

/** @returns `install` of `installedFrom` @throws StoreVersion, StoreUnavailable, and the client's own */
export async function migrate(database: Database, schema: string): Promise<string> {
  const { migrations, digest } = contract()
  const found = await look(database, schema)
  checkVersion(found?.version ?? 0, migrations.length, schema)
  const current = found?.version === migrations.length
  if (current && found.operations === digest) return found.install
  try {
    return await install(database, schema)
  } catch (error) {
    if (stateOf(error) !== '42501') throw error
    // Whoever may use the functions need not be able to change them.
    if (current) return found.install
    const message = `the schema ${schema} is not up to date, and this role may not change it: open it once with the role that owns it`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  }
}

async function look(database: Database, schema: string) {
  const find = `select version, operations, install from json_to_record(${schema}.installed())
    as found(version integer, operations text, install text)`
  try {
    const found = await database.run(find)
    if (found[0]?.install !== null) return installedFrom(found)
    // Restored from a dump of another database.
    await database.run(`select ${schema}.adopt()`)
    return installedFrom(await database.run(find))
  } catch (error) {
    // No schema, no function: not installed. No rights on it: the attempt to install says what to do.
    if (['3F000', '42883', '42501'].includes(stateOf(error))) return undefined
    throw error
  }
}

async function install(database: Database, schema: string): Promise<string> {
  const { migrations, operations, digest } = contract()
  const session = await database.begin('isolation level read committed')
  const named = (text: string) => text.replaceAll(/\bmillpond\b/g, schema)
  const meta = async () =>
    installedFrom(await session.run(`select version, operations, install::text from ${schema}.meta`))
  try {
    await session.run(`select pg_advisory_xact_lock(hashtext('${schema} migrate'), 1)`)
    const [there] = await session.run(
      `select to_regnamespace('${schema}') is not null as schema, to_regclass('${schema}.meta') is not null as meta`,
    )
    const version = there?.meta === true ? (await meta()).version : 0
    checkVersion(version, migrations.length, schema)
    const script = [
      'set local client_min_messages = warning;',
      // Only where it is missing: `if not exists` would ask for the right to make it first.
      there?.schema === true ? '' : `create schema ${schema};`,
      ...migrations.slice(version).map(named),
      named(operations),
      version === 0
        ? `insert into ${schema}.meta (version, operations, home) values (${migrations.length}, '${digest}', ${schema}.here());`
        : `update ${schema}.meta set version = ${migrations.length}, operations = '${digest}';`,
    ]
    await session.run(script.join('\n'))
    const installed = await meta()
    await session.end('commit')
    return installed.install
  } catch (error) {
    await session.end('rollback').catch(() => {})
    throw error
  }
}
