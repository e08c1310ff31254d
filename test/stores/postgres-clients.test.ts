/** How a client is set up changes no answer of the store: its parsers and transforms are for the application's own statements. */
import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { Millpond } from '../../src/index.ts'
import { missingReason } from '../servers/shared.ts'
import { dropSchema, newSchema, server, urlOf } from './postgres-fixture.ts'

const skip = missingReason('postgres')

/** json, jsonb, bool, int2, int4, int8, text[], int4[], uuid, timestamptz. */
const CHANGED = [114, 3802, 16, 21, 23, 20, 1009, 1007, 2950, 1184]
const broken = (value: unknown) => ({ changed: value })
const { setTypeParser: set } = pg.types

/** Sets parsers for the whole process, as applications do. */
function breakParsers(): () => void {
  const before = CHANGED.map((oid) => pg.types.getTypeParser(oid))
  for (const oid of CHANGED) set(oid, broken)
  return () => {
    for (const [at, oid] of CHANGED.entries()) set(oid, before[at] ?? String)
  }
}

const types = Object.fromEntries(
  CHANGED.map((oid) => [`t${oid}`, { to: 0, from: [oid], serialize: String, parse: broken }]),
)
const quiet = { max: 4, onnotice: () => {} }
const sqls: Record<string, postgres.Options<Record<string, postgres.PostgresType>>> = {
  'fetch_types: false': { fetch_types: false },
  'transform: camel': { transform: postgres.camel },
  'transform of values': { transform: { value: { from: broken }, column: { from: () => 'renamed' } } },
  'types of its own': { types },
}

type Client = { client: object | undefined; end: () => Promise<void> }
const pool = (options: pg.PoolConfig = {}): Client => {
  const client = new pg.Pool({ connectionString: urlOf('postgres'), max: 4, ...options })
  return { client, end: () => client.end() }
}
const clients: Record<string, () => Client> = {
  'connections of our own': () => ({ client: undefined, end: async () => {} }),
  'pg Pool': pool,
  'pg Pool with types of its own': () => pool({ types: { getTypeParser: () => broken } }),
  ...Object.fromEntries(
    Object.entries(sqls).map(([name, options]) => [
      `postgres.js, ${name}`,
      () => {
        const client = postgres(urlOf('postgres'), { ...quiet, ...options })
        // It waits for ever for the connection that listened.
        return { client, end: () => client.end({ timeout: 1 }) }
      },
    ]),
  ),
}

let restore = () => {}
afterEach(() => restore())

/** Everything that reads an answer. */
async function useAll(pond: Millpond): Promise<void> {
  const queue = pond.queue<{ n: number }>('emails', { keep: { done: '1h' }, capacity: 100, lease: '1s' })
  const first = await queue.push({ n: 1 }, { key: 'one' })
  const again = await queue.push({ n: 1 }, { key: 'one' })
  assert.deepEqual(again, { id: first.id, existing: true })
  assert.equal((await pond.job(first.id))?.state, 'waiting')
  assert.equal(await pond.cancel(first.id), 'cancelled')
  const extended = Promise.withResolvers<void>()
  queue.work(async ({ data }, ctx) => {
    await ctx.progress('half')
    extended.resolve()
    return data.n * 2
  })
  const second = await queue.push({ n: 2 }, { delay: 1 })
  await extended.promise
  assert.equal(await pond.result(second.id, { timeout: '30s' }), 4)
  const [stats] = await pond.stats({ minutes: 5 })
  assert.equal(stats?.counts.done, 1)
  assert.equal((await queue.jobs('done')).length, 1)
}

describe('whatever the client makes of values', { skip }, () => {
  for (const [name, make] of Object.entries(clients)) {
    test(`${name}: every answer is the same`, async () => {
      const schema = newSchema()
      restore = breakParsers()
      const { client, end } = make()
      const pond = await Millpond.open(urlOf('postgres'), { schema, ...(client === undefined ? {} : { client }) })
      try {
        await useAll(pond)
        const effects: unknown[] = []
        pond.queue<number>('effects').work(
          async (_, ctx) => {
            const inner = await pond.queue('inner').push(1, { key: 'k', tx: ctx.tx })
            effects.push(inner.existing)
          },
          { transaction: true },
        )
        const { id } = await pond.queue('effects').push(1)
        await pond.result(id, { timeout: '30s' })
        assert.deepEqual(effects, [false])
      } finally {
        await pond.close()
        await end()
        restore()
        await dropSchema(schema)
      }
    })
  }

  const transactions: Record<string, (push: (tx: unknown) => Promise<void>) => Promise<void>> = {
    pg: async (push) => {
      const client = new pg.Client(urlOf('postgres'))
      await client.connect()
      await client.query('begin')
      await push(client)
      await client.query('commit')
      await client.end()
    },
    Kysely: async (push) => {
      const plugins = [new CamelCasePlugin()]
      const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: pool().client as pg.Pool }), plugins })
      await db.transaction().execute(push)
      await db.destroy()
    },
    'Drizzle on pg': async (push) => {
      const { client, end } = pool()
      await drizzlePg(client as pg.Pool).transaction(push)
      await end()
    },
    'a function': async (push) => {
      const client = new pg.Client(urlOf('postgres'))
      await client.connect()
      await client.query('begin')
      await push((text: string, params: unknown[]) => client.query(text, params))
      await client.query('commit')
      await client.end()
    },
    ...Object.fromEntries(
      Object.entries(sqls).map(([name, options]) => [
        `postgres.js, ${name}`,
        async (push: (tx: unknown) => Promise<void>) => {
          const sql = postgres(urlOf('postgres'), { ...quiet, ...options })
          await sql.begin(push)
          await sql.end()
        },
      ]),
    ),
  }
  for (const [name, transact] of Object.entries(transactions)) {
    test(`a push in a transaction of ${name} tells what it did`, async () => {
      const schema = newSchema()
      const pond = await Millpond.open(urlOf('postgres'), { schema })
      restore = breakParsers()
      try {
        const queue = pond.queue<number>('emails')
        const known = await queue.push(1, { key: 'k' })
        await transact(async (tx) => {
          assert.deepEqual(await queue.push(2, { key: 'k', tx }), { id: known.id, existing: true })
          assert.equal((await queue.push(3, { tx })).existing, false)
        })
        assert.equal((await queue.jobs('waiting')).length, 2)
      } finally {
        restore()
        await pond.close()
        await dropSchema(schema)
      }
    })
  }

  test('is refused with a code where the client leaves no way round it', async () => {
    const sql = postgres(urlOf('postgres'), { ...quiet, transform: { row: { from: broken } } })
    await assert.rejects(Millpond.open(urlOf('postgres'), { client: sql }), {
      code: 'InvalidOption',
      message: /transform\.row/,
    })
    const schema = newSchema()
    const pond = await Millpond.open(urlOf('postgres'), { schema })
    try {
      const queue = pond.queue<number>('emails')
      const refused = { code: 'TransactionMismatch' }
      await assert.rejects(
        sql.begin((tx) => queue.push(1, { tx })),
        refused,
      )
      for (const answer of [undefined, null, 1, { row: [] }, [{ answer: new Date() }], [[{}]]]) {
        await assert.rejects(queue.push(1, { tx: async () => answer }), refused, String(answer))
      }
      assert.equal((await queue.stats()).counts.waiting, 0)
    } finally {
      await pond.close()
      await sql.end()
      await dropSchema(schema)
    }
  })
})

test('the tests set parsers back', { skip }, async () => {
  const [row] = await server(`select '{"a": 1}'::json as answer`)
  assert.deepEqual(row?.answer, { a: 1 })
})
