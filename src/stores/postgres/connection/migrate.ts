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
import type { Cells, Database } from './database.ts'

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

/** SQLSTATEs of objects that others made under the same names. */
const OCCUPIED = /^42(P07|P13|P16|710|723|809)$/
const NOT_INSTALLED = ['3F000', '42883', '42501']

/**
 * @returns `install`, which tells this installation from others of the same name
 * @throws StoreVersion, StoreUnavailable, and the client's own
 */
export async function migrate(database: Database, schema: string): Promise<string> {
  const { migrations, operations, digest } = contract()
  const newest = migrations.length
  const run = (script: string) => database.run(script)
  const [version, found, install] = await look(run, schema)
  checkVersion(version, newest, schema)
  if (version === newest && found === digest) return install
  const session = await database.begin('isolation level read committed, read write')
  const named = (text: string) => text.replaceAll(/\bmillpond\b/g, schema)
  try {
    // So that nothing of the same name in another schema is taken for ours.
    await session.run('set local search_path = pg_catalog, pg_temp')
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
    if (OCCUPIED.test(stateOf(error))) {
      const message =
        `the schema ${schema} has an object of another application that Millpond would make: give Millpond a schema ` +
        'of its own'
      throw new MillpondError('InvalidOption', message, { cause: error })
    }
    if (stateOf(error) !== '42501') throw error
    // Whoever may use the functions need not be able to change them.
    if (version === newest) return install
    const message = `the schema ${schema} is not up to date, and this role may not change it: open it once with the role that owns it`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  }
  return (await look(run, schema))[2]
}

type Run = (script: string) => Promise<Cells[]>

/**
 * Adopts what was restored, emptied, or replicated there. To be called on each new connection: it may lead to another server.
 * @returns version and digest of what is installed, and `install`; version 0: nothing, or not for this role
 */
export async function look(run: Run, schema: string): Promise<[version: number, digest: string, install: string]> {
  const find = `select version, operations, install from pg_catalog.json_to_record(${schema}.installed())
    as found(version integer, operations text, install text)`
  try {
    let [found] = await run(find)
    if (found?.[2] === null) {
      await run(`set transaction isolation level read committed, read write; select ${schema}.adopt()`)
      ;[found] = await run(find)
    }
    return [Number(found?.[0] ?? 0), String(found?.[1]), String(found?.[2])]
  } catch (error) {
    // There is no schema or no function, or this role has no right to it. In that case the attempt to install tells what to do.
    if (NOT_INSTALLED.includes(stateOf(error))) return [0, '', '']
    // Nothing else in the statement can be wrong.
    if (stateOf(error) !== '42601') throw error
    throw new MillpondError('InvalidOption', `schema=${schema} is a word of SQL: choose another name`, { cause: error })
  }
}

function checkVersion(version: number, newest: number, schema: string): void {
  if (version <= newest) return
  const message = `the schema ${schema} was migrated by a newer version of Millpond: upgrade this one`
  throw new MillpondError('StoreVersion', message)
}
