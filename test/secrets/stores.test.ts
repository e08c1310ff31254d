/** Stores and servers that fail in the midst of calls: full, broken, refusing, gone. Their errors name things, and hold no payload. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { inState } from '../api/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startPostgres } from '../servers/postgres.ts'
import { redisPrograms } from '../servers/programs.ts'
import { type RedisServer, startNode, startRedis } from '../servers/redis.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema, server } from '../stores/postgres-fixture.ts'
import { scratch } from '../support/cleaning.ts'
import { assertClean, CANARY, fails, written } from './canary.ts'

const DATA = { to: CANARY, bytes: Buffer.from(CANARY) }

/** Every call that carries a payload, or works on jobs that have one. */
async function callsOf(pond: Millpond, id: string): Promise<[string, () => Promise<unknown>][]> {
  const queue = pond.queue<unknown>('q')
  return [
    ['push', () => queue.push(DATA)],
    ['push of a text', () => queue.push({ to: CANARY })],
    ['push with a key', () => queue.push(DATA, { key: 'k', group: 'g', delay: 1000 })],
    ['pushMany', () => queue.pushMany([DATA, DATA])],
    ['push where it waits for room', () => pond.queue<unknown>('q', { whenFull: 'wait' }).push(DATA)],
    ['a new queue', () => pond.queue<unknown>('other', { capacity: 1 }).push(DATA)],
    ['job', () => pond.job(id)],
    ['jobs', () => queue.jobs('waiting')],
    ['cancel', () => pond.cancel(id)],
    ['requeue', () => queue.requeue([id])],
    ['stats', () => pond.stats()],
    ['pause', () => queue.pause()],
  ]
}

/** The calls that fail; each must show nothing. @returns how many did */
async function failing(pond: Millpond, id: string): Promise<number> {
  let failed = 0
  for (const [title, call] of await callsOf(pond, id)) {
    const answered = await call().then(
      () => undefined,
      (error: unknown) => error,
    )
    if (answered === undefined) continue
    failed++
    await fails(title, () => Promise.reject(answered))
  }
  return failed
}

/** A worker meanwhile: what the pond tells and writes of its trouble. */
async function working(pond: Millpond, during: () => Promise<void>): Promise<void> {
  const { lines } = await written(async () => {
    const worker = pond.queue<unknown>('q').work(() => DATA)
    await during()
    await worker.close({ timeout: 10 }).catch(() => {})
  })
  for (const line of lines) assertClean(line, 'stderr')
}

async function onRedis(t: TestContext, args: readonly string[], trouble: (redis: RedisServer) => Promise<unknown>) {
  const redis = await started(t, () => startRedis({ args }))
  if (redis === undefined) return
  const pond = await Millpond.open(redis.url, { timeout: 500 })
  t.after(() => pond.close({ timeout: 10 }).catch(() => {}))
  const { id } = await pond
    .queue<unknown>('q')
    .push(DATA)
    .catch(() => ({ id: crypto.randomUUID() }))
  await trouble(redis)
  assert.ok((await failing(pond, id)) >= 5)
  await working(pond, async () => {
    await failing(pond, id)
  })
}

const noRedis = { skip: missingReason('redis') }

test('Redis: scripts are not allowed, and the server repeats what it was given', noRedis, (t) =>
  onRedis(t, [], async (redis) => {
    // Another server in its place, as a pond does not open without scripts.
    await redis.stop()
    const args = ['--rename-command', 'EVALSHA', 'nope1', '--rename-command', 'EVAL', 'nope2']
    await started(t, async () => startNode(await redisPrograms(), 'redis', redis.port, { args }))
  }),
)

test('Redis: full', noRedis, (t) => onRedis(t, [], (redis) => redis.command('config', 'set', 'maxmemory', '1')))

test('Redis: the keys are of another type', noRedis, (t) =>
  onRedis(t, [], async (redis) => {
    const keys = (await redis.command('keys', '*')).split('\n')
    await redis.command('del', ...keys)
    for (const key of keys) await redis.command('set', key, CANARY)
  }),
)

test('Redis: the values are not what they should be', noRedis, (t) =>
  onRedis(t, [], async (redis) => {
    const keys = (await redis.command('keys', '*jobs')).split('\n')
    for (const key of keys)
      for (const field of (await redis.command('hkeys', key)).split('\n'))
        await redis.command('hset', key, field, CANARY)
    await redis.command('config', 'set', 'maxmemory', '1')
  }),
)

test('Redis: gone', noRedis, (t) => onRedis(t, [], (redis) => redis.stop()))

const noPostgres = { skip: missingReason('postgres') }

/** A pond in a schema of its own, on the store's connections and on those of the clients that callers bring. */
async function onPostgres(t: TestContext, check: (pond: Millpond, schema: string) => Promise<void>): Promise<void> {
  const url = serverUrl('postgres') ?? ''
  const sql = postgres(url, { max: 6, onnotice: () => {} })
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  t.after(async () => {
    await sql.end()
    await pool.end()
  })
  for (const client of [undefined, sql, pool]) {
    const schema = newSchema()
    const pond = await Millpond.open(url, { schema, ...(client === undefined ? {} : { client }) })
    try {
      await check(pond, schema)
    } finally {
      await pond.close({ timeout: 10 })
      await dropSchema(schema)
    }
  }
}

test('PostgreSQL: constraints and triggers whose details quote the row', noPostgres, (t) =>
  onPostgres(t, async (pond, schema) => {
    const { id } = await pond.queue<unknown>('q').push(DATA)
    const table = `${schema}.waiting`
    for (const [make, drop] of [
      ['add constraint refused check (id is null) not valid', 'drop constraint refused'],
      ['alter trace set not null', 'alter trace drop not null'],
    ]) {
      await server(`delete from ${table}`)
      await server(`alter table ${table} ${make}`)
      assert.ok((await failing(pond, id)) >= 2, make)
      await server(`alter table ${table} ${drop}`)
    }
  }),
)

test('PostgreSQL: the schema is gone', noPostgres, (t) =>
  onPostgres(t, async (pond, schema) => {
    const { id } = await pond.queue<unknown>('q').push(DATA)
    await server(`alter schema ${schema} rename to ${schema}_moved`)
    try {
      assert.ok((await failing(pond, id)) >= 5)
      await working(pond, async () => {
        await failing(pond, id)
      })
    } finally {
      await server(`alter schema ${schema}_moved rename to ${schema}`)
    }
  }),
)

test('PostgreSQL: statements of handlers, their commits, and pushes inside transactions', noPostgres, (t) =>
  onPostgres(t, async (pond, schema) => {
    await server(
      `create table ${schema}.accounts (email text unique deferrable initially immediate, age integer check (age > 0))`,
    )
    await server(`insert into ${schema}.accounts values ('${CANARY}')`)
    const queue = pond.queue<string>('q')
    const insert = `insert into ${schema}.accounts (email, age) values ($1, $2::text::integer)`
    const caught: unknown[] = []
    const { lines } = await written(async () => {
      await using _worker = queue.work(
        async ({ data }, { tx }) => {
          if (data === 'late') await tx('set constraints all deferred')
          const failed = tx(insert, [CANARY, data === 'age' ? CANARY : data === 'check' ? '-1' : '1'])
          if (data === 'late') await failed
          else await failed.catch((error: unknown) => caught.push(error))
          if (data === 'sql') await tx(`select '${CANARY}'::uuid`).catch((error: unknown) => caught.push(error))
        },
        { transaction: true },
      )
      for (const data of ['unique', 'age', 'check', 'late', 'sql']) {
        const { id } = await queue.push(data, { attempts: 1 })
        const { error } = await inState(pond, id, 'dead')
        assertClean(error, `the job's error: ${data}`)
        await fails(data, () => pond.result(id))
      }
    })
    for (const line of lines) assertClean(line, 'stderr')
    for (const error of caught) assertClean(error, 'what a handler catches')
    const [unique] = caught
    // What is needed to deal with it is there, as the client names it.
    const { code, constraint, constraint_name } = Object.assign(
      { constraint: '', constraint_name: '', code: '' },
      unique,
    )
    assert.deepEqual([code, constraint || constraint_name], ['23505', 'accounts_email_key'])

    await server(`alter table ${schema}.waiting add constraint refused check (id is null) not valid`)
    const sql = postgres(serverUrl('postgres') ?? '', { max: 1, onnotice: () => {} })
    const client = new pg.Client({ connectionString: serverUrl('postgres') })
    try {
      await fails('push in postgres.js', () => sql.begin((tx) => queue.push(CANARY, { tx })))
      await fails('push in the pool of postgres.js', () => queue.push(CANARY, { tx: sql }))
      await client.connect()
      await fails('push in no transaction', () => queue.push(CANARY, { tx: client }))
      await client.query('begin')
      await fails('push in pg', () => queue.push(CANARY, { tx: client }))
      await client.query('select 1/0').catch(() => {})
      await fails('push in a transaction that has failed', () => queue.push(CANARY, { tx: client }))
      await client.end()
      await fails('push on a client that was ended', () => queue.push(CANARY, { tx: client }))
    } finally {
      await sql.end()
      await client.end()
    }
  }),
)

test('PostgreSQL: gone', noPostgres, async (t) => {
  const gone = await started(t, () => startPostgres())
  if (gone === undefined) return
  await gone.query(`create role locked login password '${CANARY}'`)
  // The schema is laid down by the one with time enough for it.
  await (await Millpond.open(gone.url)).close()
  const pond = await Millpond.open(gone.url.replace('//postgres@', `//postgres:${CANARY}@`), { timeout: 1000 })
  t.after(() => pond.close({ timeout: 10 }).catch(() => {}))
  const { id } = await pond.queue<unknown>('q').push(DATA)
  await gone.stop()
  assert.ok((await failing(pond, id)) >= 5)
  await working(pond, async () => {
    await failing(pond, id)
  })
})

test('SQLite: a lock, a broken table, triggers and statements of handlers', async (t) => {
  const path = join(scratch(t), 'test.db')
  const pond = await Millpond.open(`sqlite:${path}`, { busyTimeout: 50 })
  t.after(() => pond.close({ timeout: 10 }).catch(() => {}))
  const queue = pond.queue<unknown>('q')
  const { id } = await queue.push(DATA)
  const db = new DatabaseSync(path, { timeout: 5000 })
  t.after(() => db.close())

  db.exec('begin immediate')
  assert.ok((await failing(pond, id)) >= 3)
  await fails('push on a connection of its own', () => queue.push(CANARY, { tx: new DatabaseSync(':memory:') }))
  db.exec('rollback')
  await fails('push in no transaction', () => queue.push(CANARY, { tx: db }))

  db.exec(`create table accounts (email text unique, age integer check (age > 0))`)
  db.exec(`insert into accounts values ('${CANARY}', 1)`)
  const caught: unknown[] = []
  const note = (error: unknown) => void caught.push(error)
  const { lines } = await written(async () => {
    await using _worker = pond.queue<unknown>('tx').work(
      async (_, { tx }) => {
        await tx('insert into accounts values (?, 1)', [CANARY]).catch(note)
        await tx('insert into accounts values (?, -1)', [`${CANARY}2`]).catch(note)
        await tx('insert into accounts values (?, json(?))', ['x', `{"${CANARY}`]).catch(note)
        await tx(`select '${CANARY}`).catch(note)
        await tx('select ?', [{ CANARY }]).catch(note)
        await tx('select ?', [CANARY, CANARY]).catch(note)
      },
      { transaction: true },
    )
    const pushed = await pond.queue<unknown>('tx').push(1)
    await pond.result(pushed.id)
  })
  for (const line of lines) assertClean(line, 'stderr')
  assert.equal(caught.length, 6)
  for (const error of caught) {
    assertClean(error, 'what a handler catches')
    assert.ok(isMillpondError(error))
  }

  db.exec(`create trigger refused before insert on millpond_jobs begin select raise(abort, 'refused'); end`)
  assert.ok((await failing(pond, id)) >= 3)
  db.exec('begin')
  await fails('push in a transaction', () => queue.push(CANARY, { tx: db }))
  db.exec('rollback')
  db.exec('drop trigger refused')
  db.exec('drop table millpond_jobs')
  await working(pond, async () => {
    assert.ok((await failing(pond, id)) >= 5)
  })
})
