/** A table of the test's own in the store's database, and a connection of the test's own to it: per store, since SQL differs. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { serverUrl } from '../servers/shared.ts'
import type { Place } from './suite.ts'

export interface Effects extends AsyncDisposable {
  /** A statement that adds a row; its parameter is a text. */
  readonly insert: string
  /** One row, with the number of rows as `count`. */
  readonly count: string
  /** The connection, as `tx` takes it. */
  readonly tx: unknown
  run(text: string, params?: readonly string[]): Promise<void>
  /** The texts, in the order in which they were added. */
  all(): Promise<unknown[]>
  /** A connection to another database of the kind. */
  elsewhere(): Promise<Pick<Effects, 'run' | 'tx'> & AsyncDisposable>
}

export async function effectsOf({ url }: Place): Promise<Effects> {
  return url.startsWith('sqlite:') ? ofSqlite(url) : ofPostgres(new URL(url))
}

function ofSqlite(url: string): Effects {
  const connect = (path: string) => {
    const db = new DatabaseSync(path)
    return {
      db,
      tx: db,
      run: async (text: string, params: readonly string[] = []) => void db.prepare(text).run(...params),
      [Symbol.asyncDispose]: async () => db.close(),
    }
  }
  const { db, ...connection } = connect(url.replace(/^sqlite:|\?.*$/g, ''))
  db.exec('pragma busy_timeout = 5000; create table if not exists effects (text text) strict')
  return {
    ...connection,
    insert: 'insert into effects values (?)',
    count: 'select count(*) as count from effects',
    all: async () =>
      db
        .prepare('select text from effects order by rowid')
        .all()
        .map(({ text }) => text),
    elsewhere: async () => connect(':memory:'),
  }
}

async function ofPostgres(url: URL): Promise<Effects> {
  const connect = async (connectionString: string) => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    return {
      client,
      tx: client,
      run: async (text: string, params: readonly string[] = []) => void (await client.query(text, [...params])),
      [Symbol.asyncDispose]: () => client.end(),
    }
  }
  const table = `effects_${url.searchParams.get('schema')}`
  url.search = ''
  const { client, ...connection } = await connect(url.href)
  await client.query(`create table ${table} (n serial, text text)`)
  return {
    ...connection,
    insert: `insert into ${table} (text) values ($1)`,
    // An int8 would come as a text.
    count: `select count(*)::integer as count from ${table}`,
    all: async () => (await client.query(`select text from ${table} order by n`)).rows.map(({ text }) => text),
    async elsewhere() {
      const other = new URL(serverUrl('postgres') ?? '')
      other.pathname = '/template1'
      return connect(other.href)
    },
    async [Symbol.asyncDispose]() {
      await client.query(`rollback; drop table ${table}`)
      await client.end()
    },
  }
}
