/** A place of its own in each durable store, for tests that mistreat processes and leave the servers alone. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { started } from '../servers/fixtures.ts'
import { startPostgres } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'
import { serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { freshPrefix, removePrefix } from '../stores/redis-fixture.ts'
import { after, scratch } from '../support/cleaning.ts'
import type { Effect } from './backends.ts'
import { countsOf, faultsOf, look } from './harness.ts'

/** @returns the URL, for as long as the test; undefined: the test is skipped */
type UrlOf = (t: TestContext) => Promise<string | undefined>

const sqlite: UrlOf = async (t) => `sqlite:${join(scratch(t), 'app.db')}`

/** On the server that the test run shares; without one, on its own. */
const postgres: UrlOf = async (t) => {
  const shared = serverUrl('postgres')
  if (shared === undefined) return (await started(t, startPostgres))?.url
  const schema = newSchema()
  after(t, () => dropSchema(schema))
  return `${shared}?schema=${schema}`
}

/** The same. */
const redis: UrlOf = async (t) => {
  const shared = serverUrl('redis')
  if (shared === undefined) return (await started(t, () => startRedis()))?.url
  const prefix = freshPrefix()
  after(t, () => removePrefix(shared, prefix))
  return `${shared}?prefix=${prefix}`
}

export const DURABLE_STORES: Record<string, UrlOf> = { sqlite, postgres, redis }

/** A store, how its workers work, and what they have done there. */
export interface Place {
  url: string
  transaction: boolean
  /** The table that workers with `transaction` write to; nothing in it is unique, so that an effect applied twice would show. */
  table: string
  /** Its rows. */
  effects(): Promise<Effect[]>
  /** What is wrong with the store's own data once all is settled; only SQLite is looked at. */
  faults(queue: string): string[]
}

const COLUMNS = '(id text, attempt integer, fence bigint)'
const effectOf = ({ id, fence }: Record<string, unknown>): Effect => ({ id: `${id}`, fence: `${fence}` })
const none = { table: 'effects', effects: async () => [], faults: () => [] }

async function sqlitePlace(t: TestContext, transaction: boolean): Promise<Place> {
  const path = join(scratch(t), 'app.db')
  const db = new DatabaseSync(path)
  db.exec(`create table effects ${COLUMNS}`)
  db.close()
  return {
    ...{ url: `sqlite:${path}`, transaction, table: 'effects' },
    effects: async () => look(path, 'select id, fence from effects').map(effectOf),
    faults(queue) {
      const { kept, real } = countsOf(path, queue)
      const counts = isDeepStrictEqual(kept, real) ? [] : [`counts ${JSON.stringify(kept)} of ${JSON.stringify(real)}`]
      const sql = `select count from millpond_counts where (queue, kind, name) = (?, 'total', 'done')`
      const [total] = look(path, sql, queue)
      const totals = total?.count === real.done ? [] : [`in all ${total?.count} are done, of ${real.done}`]
      return [...faultsOf(path), ...counts, ...totals]
    },
  }
}

async function postgresPlace(t: TestContext): Promise<Place | undefined> {
  const url = await postgres(t)
  if (url === undefined) return undefined
  const pool = new pg.Pool({ connectionString: url.replace(/\?.*/, ''), max: 1 })
  after(t, () => pool.end())
  const table = `public.effects_${randomBytes(5).toString('hex')}`
  await pool.query(`create table ${table} ${COLUMNS}`)
  after(t, () => pool.query(`drop table ${table}`))
  const effects = async () => (await pool.query(`select id, fence from ${table}`)).rows.map(effectOf)
  return { ...{ url, transaction: true, table, effects }, faults: none.faults }
}

const plain = (urlOf: UrlOf) => async (t: TestContext) => {
  const url = await urlOf(t)
  return url === undefined ? undefined : { url, transaction: false, ...none }
}

export const PLACES: Record<string, (t: TestContext) => Promise<Place | undefined>> = {
  sqlite: (t) => sqlitePlace(t, false),
  'sqlite, transaction: true': (t) => sqlitePlace(t, true),
  redis: plain(redis),
  postgres: plain(postgres),
  'postgres, transaction: true': postgresPlace,
}
