/** What the tests of the PostgreSQL store share: a schema of its own for each store, and ways to look at the server. */
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { HANDED_ON, SCHEMAS } from '../servers/schemas.ts'
import { serverUrl } from '../servers/shared.ts'

export function urlOf(server: 'postgres' | 'pgbouncer'): string {
  const url = serverUrl(server)
  if (url === undefined) throw new Error(`${server} is not there`)
  return url
}

export const newSchema = (): string => `mp_${process.pid}_${randomBytes(5).toString('hex')}`

let shared: pg.Pool | undefined

/** A statement of the tests' own, straight to the server. */
export async function server(statement: string, params: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  shared ??= new pg.Pool({ connectionString: urlOf('postgres'), max: 1, allowExitOnIdle: true })
  return (await shared.query(statement, [...params])).rows
}

/** A server goes on with the last call of a process that was killed, which may lock the tables in another order. */
export async function dropSchema(schema: string, tries = 5): Promise<void> {
  try {
    await server(`drop schema if exists ${schema} cascade`)
  } catch (error) {
    const isDeadlock = error instanceof Error && 'code' in error && error.code === '40P01'
    if (!isDeadlock || tries === 0) throw error
    await dropSchema(schema, tries - 1)
  }
}

let pooled: pg.Pool | undefined

/** For all stores of the process: a process of the server makes its plans once, where it serves them one after the other. */
export function pool(): pg.Pool {
  pooled ??= new pg.Pool({ connectionString: urlOf('postgres'), max: 30, allowExitOnIdle: true })
  return pooled
}

/** A fresh store in a schema of its own, which goes with it. */
export async function openPostgres(
  url: string,
  options: StoreOptions = {},
): Promise<{ store: Store; schema: string; dispose: () => Promise<void> }> {
  const schema = newSchema()
  const store = await open(url, { schema, ...options })
  return {
    store,
    schema,
    async dispose() {
      await store.close()
      await dropSchema(schema)
    },
  }
}

/**
 * In a run with a server of its own, schemas go from one test file to the next, by a table: to make one takes more than a second of the
 * server's CPU time, to empty one a tenth. Few at a time, as the next file wants some, too.
 */
const isHandedOn = process.env[HANDED_ON] !== undefined && serverUrl('postgres') !== undefined
const TAKE = `delete from ${SCHEMAS} where name in (select name from ${SCHEMAS} limit 2 for update skip locked) returning name`

/** Schemas that are empty again. */
const emptied: string[] = isHandedOn ? (await server(TAKE)).map(({ name }) => String(name)) : []
after(async () => {
  for (const schema of emptied.splice(0)) {
    if (isHandedOn) await server(`insert into ${SCHEMAS} values ($1)`, [schema])
    else await dropSchema(schema)
  }
  await Promise.all([shared?.end(), pooled?.end()])
})

/**
 * As `openPostgres`, but in a schema that served before, emptied: hundreds of tests need one each, and behind a pooler the server's
 * processes outlive them, with all the plans for schemas that are gone.
 */
export async function openEmptied(
  url: string,
  options: StoreOptions = {},
): Promise<{ store: Store; dispose: () => Promise<void> }> {
  const schema = takeSchema()
  const store = await open(url, { schema, ...options })
  return {
    store,
    async dispose() {
      await store.close()
      await giveBackSchema(schema)
    },
  }
}

/** The name of a schema that is empty, or not even there. */
export const takeSchema = (): string => emptied.pop() ?? newSchema()

/** Empties it, for the next test. Every store on it must be closed. */
export async function giveBackSchema(schema: string): Promise<void> {
  const [there] = await server('select to_regnamespace($1) is not null as installed', [schema])
  if (there?.installed === true) {
    // Truncating makes new files for each table and its indexes, which takes far longer than deleting a few rows.
    const empty = TABLES.map((name) => {
      const table = `${schema}.${name}`
      return `if pg_relation_size('${table}') > 100000 then truncate ${table}; else delete from ${table}; end if;`
    })
    await server(`do $$ begin
      perform set_config('synchronous_commit', 'off', true);
      ${empty.join('\n')}
      update ${schema}.meta set removed = 0;
      update ${schema}.segments set current = segment = 0, used = segment = 0, opened_at = null, closed_at = null, greatest = null, look_at = null;
      perform setval('${schema}.place', 1, false);
      ${SWEPT.map((name) => `perform setval('${schema}.swept_${name}', 0);`).join('\n')}
    end $$`)
  }
  emptied.push(schema)
}

/** All but those that describe the schema itself. */
const TABLES = [
  ...[
    'queues',
    'lines',
    'waiting',
    'running',
    'retired',
    'keys',
    'moves',
    'totals',
    'sleepers',
    'workers',
    'schedules',
    'children',
    'links',
    'parents',
    'ended',
    'link_walk',
    'journals',
    'entries',
    'journal_walk',
    'repeats',
    'limits',
    'groups',
    'group_limits',
    'turns',
    'tickets',
    'arrivals',
    'histograms',
  ],
  ...Array.from({ length: 8 }, (_, segment) => `done_${segment}`),
]

const SWEPT = ['due', 'place', 'leases', 'idle', 'moves', 'whole']

export { job } from './job.ts'

export async function withStore(
  body: (store: Store, schema: string) => Promise<void>,
  options: StoreOptions = {},
): Promise<void> {
  const { store, schema, dispose } = await openPostgres(urlOf('postgres'), options)
  try {
    await body(store, schema)
  } finally {
    await dispose()
  }
}

export const claimAll = async (store: Store, limit = 100) =>
  (await store.operations.claim({ queue: 'emails', worker: 'w', limit, lease: 60_000 })).jobs
