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
import type { Database, Row, Session } from './database.ts'

interface Contract {
  /** In order; the first is number 1. */
  migrations: string[]
  operations: string
  digest: string
}

let contract: Contract | undefined

function load(): Contract {
  if (contract === undefined) {
    const isMigration = (name: string) => name.startsWith('migrations/')
    const files = [...SQL_FILES]
    const migrations = files.filter(([name]) => isMigration(name)).map(([, text]) => text)
    // The others call what is shared; the last takes care of rights.
    const rank = (name: string) => (name === 'shared.sql' ? 0 : name === 'roles.sql' ? 2 : 1)
    const operations = files
      .filter(([name]) => !isMigration(name))
      .sort(([a], [b]) => rank(a) - rank(b))
      .map(([, text]) => text)
      .join('\n')
    contract = { migrations, operations, digest: createHash('sha256').update(operations).digest('hex') }
  }
  return contract
}

interface Installed {
  version: number
  operations: string
  install: string
}

function installedFrom(row: Row | undefined): Installed {
  const { version, operations, install } = row ?? {}
  if (typeof version !== 'number' || typeof operations !== 'string' || typeof install !== 'string') {
    throw new MillpondError('StoreFailed', 'the schema is not one of Millpond: its table meta is empty')
  }
  return { version, operations, install }
}

/** @returns what tells this installation from others of the same name @throws StoreVersion, StoreUnavailable, and the client's own */
export async function migrate(database: Database, schema: string): Promise<string> {
  const { migrations, digest } = load()
  const found = await look(database, schema)
  if (found !== undefined && found.version > migrations.length) throw tooNew(schema)
  const current = found !== undefined && found.version === migrations.length
  if (current && found.operations === digest) return found.install
  try {
    return await install(database, schema)
  } catch (error) {
    // Whoever may use the functions need not be able to change them.
    if (current && stateOf(error) === '42501') return found.install
    if (stateOf(error) !== '42501') throw error
    const message = `the schema ${schema} is not up to date, and this role may not change it: open it once with the role that owns it`
    throw new MillpondError('StoreUnavailable', message, { cause: error })
  }
}

async function look(database: Database, schema: string): Promise<Installed | undefined> {
  const find = `select version, operations, install from json_to_record(${schema}.installed())
    as found(version integer, operations text, install text)`
  try {
    const [row] = await database.run(find)
    if (row?.install !== null) return installedFrom(row)
    // Restored from a dump of another database.
    await database.run(`select ${schema}.adopt()`)
    return installedFrom((await database.run(find))[0])
  } catch (error) {
    // No schema, no function: not installed. No rights on it: the attempt to install says what to do.
    if (['3F000', '42883', '42501'].includes(stateOf(error))) return undefined
    throw error
  }
}

async function install(database: Database, schema: string): Promise<string> {
  const { migrations, operations, digest } = load()
  const session = await database.begin('isolation level read committed')
  const named = (text: string) => text.replaceAll(/\bmillpond\b/g, schema)
  try {
    await session.run(`select pg_advisory_xact_lock(hashtext('${schema} migrate'), 1)`)
    const [there] = await session.run(
      `select to_regnamespace('${schema}') is not null as schema, to_regclass('${schema}.meta') is not null as meta`,
    )
    const version = there?.meta === true ? await versionOf(session, schema) : 0
    if (version > migrations.length) throw tooNew(schema)
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
    const [row] = await session.run(`select version, operations, install::text from ${schema}.meta`)
    await session.commit()
    return installedFrom(row).install
  } catch (error) {
    await session.rollback().catch(() => {})
    throw error
  }
}

async function versionOf(session: Session, schema: string): Promise<number> {
  const [row] = await session.run(`select version, operations, install::text from ${schema}.meta`)
  return installedFrom(row).version
}

function tooNew(schema: string): MillpondError {
  return new MillpondError(
    'StoreVersion',
    `the schema ${schema} was migrated by a newer version of Millpond: upgrade this one`,
  )
}
