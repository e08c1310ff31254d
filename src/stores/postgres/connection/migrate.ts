/**
 * Brings the schema up to date. Everything happens in one transaction under an advisory lock, so any number of processes may
 * do it at once, also behind a pooler: the first does it, the others find it done.
 *
 * Tables change by numbered migrations alone, which never change once released. Functions are laid down anew where their text
 * differs, so that a fix needs no migration, unless those of a later edition are there: contract/postgres/README.md, "Editions".
 */
import { createHash } from 'node:crypto'
import { MillpondError } from '../../../values/errors/errors.ts'
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
  return {
    migrations,
    operations,
    digest: createHash('sha256').update(operations).digest('hex'),
    edition: Number(/^-- Edition: (\d+)$/m.exec(operations)?.[1]),
  }
}

/** SQLSTATEs of objects that others made under the same names. */
const OCCUPIED = /^42(P07|P13|P16|710|723|809)$/
const NOT_INSTALLED = ['3F000', '42883', '42501']

/**
 * @returns `install`, which tells this installation from others of the same name
 * @throws StoreVersion, StoreUnavailable, and the client's own
 */
export async function migrate(database: Database, schema: string): Promise<string> {
  const { migrations, operations, digest, edition } = contract()
  const newest = migrations.length
  const run = (script: string) => database.run(script)
  const isLater = (found: Functions) => found.version === newest && found.edition > edition
  const before = await look(run, schema)
  checkVersion(before.version, newest, schema)
  if (isLater(before) || (before.version === newest && before.digest === digest)) return before.install
  const session = await database.begin('isolation level read committed, read write')
  const named = (text: string) => text.replaceAll(/\bmillpond\b/g, schema)
  try {
    // So that nothing of the same name in another schema is taken for ours.
    await session.run('set local search_path = pg_catalog, pg_temp')
    await session.run(`select pg_advisory_xact_lock(hashtext('${schema} migrate'), 1)`)
    const [[hasSchema, hasMeta] = []] = await session.run(
      `select to_regnamespace('${schema}') is not null, to_regclass('${schema}.meta') is not null`,
    )
    const [meta] = hasMeta === 't' ? await session.run(`select version, operations, edition from ${schema}.meta`) : []
    const there = functionsIn(meta)
    const from = there.version
    checkVersion(from, newest, schema)
    const script = [
      'set local client_min_messages = warning;',
      // Only where it is missing: `if not exists` would ask for the right to make it first.
      hasSchema === 't' ? '' : `create schema ${schema};`,
      ...migrations.slice(from).map(named),
      named(operations),
      from === 0 ? `insert into ${schema}.meta (home) values (${schema}.here());` : '',
      `update ${schema}.meta set version = ${newest}, operations = '${digest}', edition = ${edition};`,
    ]
    // A later release may have been first.
    if (!isLater(there)) await session.run(script.join('\n'))
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
    if (before.version === newest) return before.install
    const message = `the schema ${schema} is not up to date, and this role may not change it: open it once with the role that owns it`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  }
  return (await look(run, schema)).install
}

/** What is installed, and what this release installs. Unlike `look` it changes nothing. */
export async function readSchema(database: Database, schema: string) {
  const { migrations, digest, edition } = contract()
  const find = `select version, operations, edition from pg_catalog.json_to_record(${schema}.installed())
    as found(version integer, operations text, edition integer)`
  let row: Cells | undefined
  try {
    ;[row] = await database.run(find)
  } catch (error) {
    if (!NOT_INSTALLED.includes(stateOf(error))) throw error
  }
  const found = functionsIn(row)
  const isCurrent = found.version === migrations.length && (found.edition > edition || found.digest === digest)
  const named = (pattern: RegExp) =>
    migrations.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name))
  return {
    found: found.version,
    newest: migrations.length,
    isCurrent,
    tables: named(/^create (?:unlogged )?table millpond\.(\w+)/gm),
    indexes: named(/^create (?:unique )?index (\w+)\s+on millpond\./gm),
  }
}

type Run = (script: string) => Promise<Cells[]>

/** The functions that are installed. Version 0: none, or not for this role. */
interface Functions {
  version: number
  digest: string
  edition: number
}

const functionsIn = (row: Cells | undefined): Functions => ({
  version: Number(row?.[0] ?? 0),
  digest: String(row?.[1]),
  edition: Number(row?.[2] ?? 0),
})

/**
 * Adopts what was restored, emptied, or replicated there. To be called on each new connection: it may lead to another server.
 * @returns what is installed, and `install`
 */
export async function look(run: Run, schema: string): Promise<Functions & { install: string }> {
  const find = `select version, operations, edition, install from pg_catalog.json_to_record(${schema}.installed())
    as found(version integer, operations text, edition integer, install text)`
  try {
    let [found] = await run(find)
    if (found?.[3] === null) {
      await run(`set transaction isolation level read committed, read write; select ${schema}.adopt()`)
      ;[found] = await run(find)
    }
    return { ...functionsIn(found), install: String(found?.[3]) }
  } catch (error) {
    // There is no schema or no function, or this role has no right to it. In that case the attempt to install tells what to do.
    if (NOT_INSTALLED.includes(stateOf(error))) return { ...functionsIn(undefined), install: '' }
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
