/** Stores that refuse one text for good: by a trigger, an encoding, a limit of the server. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Millpond, type OpenOptions } from '../../src/index.ts'
import type { ErrorCode } from '../../src/values/errors/errors.ts'
import { started } from '../servers/fixtures.ts'
import { startProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { dropSchema, newSchema, server, urlOf } from '../stores/postgres-fixture.ts'
import { connectTo, newPath } from '../stores/sqlite-fixture.ts'
import { after } from '../support/cleaning.ts'

export interface Place {
  pond: Millpond
  url: string
  /** A text that the store refuses with the code. */
  bad: string
  code: ErrorCode
  /** It refuses the text in errors and lines of a log as well. */
  isShort: boolean
}

async function opened(t: TestContext, url: string, options: OpenOptions = {}): Promise<Millpond> {
  const pond = await Millpond.open(url, options)
  after(t, () => pond.close())
  return pond
}

export const PLACES: Record<string, { skip: string | false; place: (t: TestContext) => Promise<Place | undefined> }> = {
  'SQLite with a trigger': {
    skip: false,
    async place(t) {
      const path = newPath()
      const pond = await opened(t, `sqlite:${path}`)
      await pond.queue('q').push('makes the tables')
      const columns = ['data', 'result', 'error', 'log', 'progress']
      const isBad = columns.map((column) => `new.${column} like '%zebra%'`).join(' or ')
      const connection = connectTo(path)
      for (const event of ['insert', 'update']) {
        connection.exec(`create trigger guard_${event} after ${event} on millpond_jobs when ${isBad}
          begin select raise(abort, 'not this one'); end`)
      }
      connection.close()
      return { pond, url: `sqlite:${path}`, bad: 'zebra', code: 'StoreRefused', isShort: true }
    },
  },
  'PostgreSQL in LATIN1': {
    skip: missingReason('postgres') ?? false,
    async place(t) {
      const database = newSchema()
      await server(`create database ${database} encoding 'LATIN1' locale 'C' template template0`)
      after(t, () => server(`drop database ${database} with (force)`))
      const url = new URL(urlOf('postgres'))
      url.pathname = `/${database}`
      const pond = await opened(t, url.href)
      return { pond, url: url.href, bad: '\u{1F986}', code: 'PayloadNotEncodable', isShort: true }
    },
  },
  'PostgreSQL with a trigger': {
    skip: missingReason('postgres') ?? false,
    async place(t) {
      const schema = newSchema()
      const pond = await opened(t, urlOf('postgres'), { schema })
      after(t, () => dropSchema(schema))
      await server(`create function ${schema}.guard() returns trigger language plpgsql as $$
        begin
          if row_to_json(new)::text like '%zebra%' then raise 'not this one'; end if;
          return new;
        end $$`)
      // Only ordinary tables of jobs have these columns.
      const tables = await server(
        `select table_name as name from information_schema.columns join pg_class on relname = table_name
         where table_schema = $1 and column_name = 'data' and relkind = 'r' and relnamespace = $1::regnamespace`,
        [schema],
      )
      assert.ok(tables.length > 4)
      for (const table of tables) {
        await server(`create trigger guard before insert or update on ${schema}.${table.name}
          for each row execute function ${schema}.guard()`)
      }
      return { pond, url: `${urlOf('postgres')}?schema=${schema}`, bad: 'zebra', code: 'StoreRefused', isShort: true }
    },
  },
  'Redis that resets the connection at a refusal': {
    skip: false,
    place: (t) => behindReset(t, []),
  },
  'Redis that resets the connection, and tells no setting': {
    skip: false,
    place: (t) => behindReset(t, ['--rename-command', 'CONFIG', '']),
  },
  'Redis with a small proto-max-bulk-len': {
    skip: false,
    async place(t) {
      const redis = await started(t, () => startRedis({ args: ['--proto-max-bulk-len', '1048576'] }))
      if (redis === undefined) return undefined
      const pond = await opened(t, redis.url, { maxPayload: 4_000_000 })
      return { pond, url: redis.url, bad: 'x'.repeat(1_200_000), code: 'PayloadTooLarge', isShort: false }
    },
  },
}

/** The client never sees why. */
async function behindReset(t: TestContext, args: readonly string[]): Promise<Place | undefined> {
  const redis = await started(t, () => startRedis({ args: ['--proto-max-bulk-len', '1048576', ...args] }))
  if (redis === undefined) return undefined
  const url = new URL(redis.url)
  const proxy = await startProxy(Number(url.port))
  after(t, () => proxy.stop())
  proxy.resetAt('-ERR Protocol error')
  url.port = `${proxy.port}`
  const pond = await opened(t, url.href, { maxPayload: 4_000_000 })
  return { pond, url: url.href, bad: 'x'.repeat(1_200_000), code: 'PayloadTooLarge', isShort: false }
}
