/**
 * A schema that was restored, emptied, copied or taken over, with stores open meanwhile: no fence is given out twice, no push that was
 * acknowledged is lost, and nobody sees a bare error of SQL.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { Millpond, MillpondError } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { freePort } from '../servers/ports.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { TcpProxy } from '../servers/proxy.ts'
import { run } from '../servers/run.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job } from './postgres-fixture.ts'

let server: PostgresServer
let folder: string
let databases = 0

const skip = missingReason('postgres')

/** A database of its own. */
async function fresh(on = server, rest = ''): Promise<string> {
  const name = `restore_${++databases}`
  await on.query(`create database ${name} ${rest}`)
  return on.url.replace(/postgres$/, name)
}

async function dump(url: string, ...options: string[]): Promise<string> {
  const file = join(folder, `${++databases}.sql`)
  await run(join(server.programs, 'pg_dump'), url, '--no-sync', '--file', file, ...options)
  return file
}

const restore = (url: string, file: string) =>
  run(join(server.programs, 'psql'), url, '-Xqw', '-v', 'ON_ERROR_STOP=1', '-o', join(folder, 'out'), '-f', file)

const holdsOf = (claims: readonly ClaimedJob[]) => claims.map(({ id, fence }) => ({ id, fence, result: null }))

/** Connections that are cut fail one call each. */
async function claimSome(store: Store): Promise<ClaimedJob[]> {
  let claims: ClaimedJob[] = []
  await until(async () => {
    claims = await claimAll(store).catch(() => [])
    return claims.length > 0
  }, 'a claim')
  return claims
}

async function withStore(url: string, body: (store: Store) => Promise<void>): Promise<void> {
  const store = await open(url, {})
  try {
    await body(store)
  } finally {
    await store.close()
  }
}

const TRUNCATE = `do $$ begin execute (
  select 'truncate ' || string_agg(oid::regclass::text, ', ') || ' restart identity' from pg_class
  where relnamespace = 'millpond'::regnamespace and relkind in ('r', 'p')); end $$`
const DELETE = `do $$ declare t regclass; begin
  for t in select oid from pg_class where relnamespace = 'millpond'::regnamespace and relkind in ('r', 'p') loop
    execute 'delete from ' || t; end loop; end $$`

before(async () => {
  if (skip) return
  folder = await mkdtemp(join(tmpdir(), 'millpond-restore-'))
  server = await startPostgres({ settings: { wal_level: 'logical', max_prepared_transactions: 10 } })
})
after(async () => {
  if (skip) return
  await server.stop()
  await rm(folder, { recursive: true })
})

describe('a restored dump', { skip }, () => {
  test('in the same database, with a store open: a claim of the time between is stale', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await store.operations.push({ jobs: [job()] })
      const file = await dump(url)
      const between = await claimAll(store)
      await server.queryAt(url, 'drop schema millpond cascade')
      await restore(url, file)
      const again = await claimSome(store)
      assert.equal(again[0]?.id, between[0]?.id)
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(between) }), ['stale'])
      // Restored once more, over what the first restore has raised.
      await server.queryAt(url, 'drop schema millpond cascade')
      await restore(url, file)
      const third = await claimSome(store)
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(again) }), ['stale'])
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(third) }), ['ok'])
    })
  })

  test('of rows alone, into emptied tables', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await store.operations.push({ jobs: [job()] })
      const file = await dump(url, '--data-only', '--schema', 'millpond')
      const between = await claimAll(store)
      await server.queryAt(url, TRUNCATE)
      await restore(url, file)
      await claimSome(store)
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(between) }), ['stale'])
    })
  })

  test('pushes in transactions go on, as the open pond finds out that its schema was restored', async () => {
    const url = await fresh()
    const pond = await Millpond.open(url)
    const client = new pg.Client(url)
    await client.connect()
    try {
      const queue = pond.queue('emails')
      await queue.push(1)
      const file = await dump(url)
      await server.queryAt(url, 'drop schema millpond cascade')
      await restore(url, file)
      await client.query('begin')
      await queue.push(2, { tx: client })
      await client.query('commit')
      assert.equal((await queue.stats()).counts.waiting, 2)
    } finally {
      await client.end()
      await pond.close()
    }
  })

  test('on another server behind the same address', async () => {
    const other = await startPostgres()
    const port = await freePort()
    const first = new TcpProxy(port, server.port)
    const second = new TcpProxy(port, other.port)
    const url = await fresh()
    const name = new URL(url).pathname.slice(1)
    await first.allow()
    try {
      await withStore(`postgres://postgres@127.0.0.1:${port}/${name}`, async (store) => {
        await store.operations.push({ jobs: [job()] })
        const file = await dump(url)
        const between = await claimAll(store)
        await other.query(`create database ${name}`)
        await restore(other.url.replace(/postgres$/, name), file)
        await first.block()
        await first.cut()
        await second.allow()
        await claimSome(store)
        assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(between) }), ['stale'])
      })
    } finally {
      await first.block()
      await second.block()
      await second.cut()
      await other.stop()
    }
  })

  test('of the schema alone is a store without jobs', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await store.operations.push({ jobs: [job()] })
    })
    const copy = await fresh()
    await restore(copy, await dump(url, '--schema-only'))
    await withStore(copy, useAll)
  })
})

/** A job all the way, and one that fails. */
async function useAll(store: Store): Promise<void> {
  const jobs = [job(), job({ key: 'k' })]
  assert.deepEqual(
    (await store.operations.push({ jobs })).map(({ status }) => status),
    ['pushed', 'pushed'],
  )
  const claims = await claimSome(store)
  assert.equal(claims.length, 2)
  assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(claims) }), ['ok', 'ok'])
  await store.operations.sweep({ limit: 100 })
  assert.deepEqual(
    (await store.operations.find({ ids: jobs.map(({ id }) => id) })).map((record) => record?.state),
    ['done', 'done'],
  )
}

describe('tables that are emptied while a store is open', { skip }, () => {
  for (const [how, statement] of Object.entries({ truncate: TRUNCATE, delete: DELETE })) {
    test(`by ${how}: pushes from then on are kept, and run`, async () => {
      const url = await fresh()
      await withStore(url, async (store) => {
        await useAll(store)
        await server.queryAt(url, statement)
        await useAll(store)
        // The next process opens it as ever.
        await withStore(url, useAll)
      })
    })
  }

  test('`segments` alone', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await store.operations.push({ jobs: [job()] })
      const claims = await claimAll(store)
      await server.queryAt(url, 'delete from millpond.segments')
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holdsOf(claims) }), ['ok'])
    })
  })

  test('a schema that was dropped is told by a code, and opening the pond anew makes it', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await useAll(store)
      await server.queryAt(url, 'drop schema millpond cascade')
      await assert.rejects(store.operations.push({ jobs: [job()] }), {
        code: 'StoreUnavailable',
        message: /open the pond anew/,
      })
      await withStore(url, useAll)
      await useAll(store)
    })
  })
})

describe('logical replication', { skip }, () => {
  test('a publication of all tables stops nothing', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await server.queryAt(url, 'create publication everything for all tables')
      await useAll(store)
      await store.operations.configure({ queue: 'emails', capacity: 10, keepDone: 1 })
      await store.operations.push({ jobs: [job({ delay: 1 }), job()] })
      const claims = await claimSome(store)
      await store.operations.fail({
        queue: 'emails',
        items: claims.map(({ id, fence }) => {
          const error = { code: 'Error', name: 'Error', message: 'm' }
          return { id, fence, error, delay: null }
        }),
      })
      await store.operations.cancel({ ids: [job().id] })
      const slices = [{ queue: 'emails', priority: 4, metric: 'run' as const, buckets: { 1: 1 } }]
      await store.operations.record({ slices })
      for (let times = 0; times < 3; times++) await store.operations.sweep({ limit: 100 })
      const without = await server.queryAt(
        url,
        `select string_agg(relname, ' ') from pg_class where relnamespace = 'millpond'::regnamespace and relkind in ('r', 'p')
           and relpersistence = 'p' and relreplident = 'd' and not exists (select from pg_index where indrelid = pg_class.oid and indisprimary)`,
      )
      assert.equal(without, '', 'tables without replica identity')
    })
  })

  test('a table without a key is told in words of its own', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await server.queryAt(
        url,
        'create publication everything for all tables',
        'alter table millpond.waiting replica identity nothing',
      )
      await store.operations.push({ jobs: [job()] })
      await assert.rejects(claimAll(store), { code: 'StoreUnavailable', message: /publication.*replica identity/ })
    })
  })

  test('a subscriber that takes over runs every job, old and new', async () => {
    const url = await fresh()
    const subscriber = await fresh()
    await withStore(url, async (store) => {
      for (let n = 0; n < 5; n++) await useAll(store)
      await store.operations.push({ jobs: [job(), job()] })
      await restore(subscriber, await dump(url, '--schema-only'))
      const name = new URL(url).pathname.slice(1)
      await server.queryAt(
        url,
        'create publication everything for all tables',
        "select pg_create_logical_replication_slot('taken_over', 'pgoutput')",
      )
      await server.queryAt(
        subscriber,
        `create subscription taking_over connection 'host=127.0.0.1 port=${server.port} user=postgres dbname=${name}'
           publication everything with (create_slot = false, slot_name = taken_over)`,
      )
      const count = () => server.queryAt(subscriber, 'select count(*) from millpond.waiting')
      await until(async () => (await count()) === '2', 'the copy')
      await store.operations.push({ jobs: [job()] })
      await until(async () => (await count()) === '3', 'the change')
      await server.queryAt(
        subscriber,
        'alter subscription taking_over disable',
        'alter subscription taking_over set (slot_name = none)',
        'drop subscription taking_over',
      )
      await server.query("select pg_drop_replication_slot('taken_over')").catch(() => {})
    })
    await withStore(subscriber, async (store) => {
      await store.operations.push({ jobs: [job(), job({ queue: 'another' })] })
      assert.equal((await claimSome(store)).length, 4)
      assert.equal(
        (await store.operations.claim({ queue: 'another', worker: 'w', limit: 9, lease: 1000 })).jobs.length,
        1,
      )
    })
  })
})

describe('what a database may be like', { skip }, () => {
  for (const [encoding, locale] of Object.entries({ LATIN1: 'C', EUC_JP: 'C', SQL_ASCII: 'C' })) {
    test(`in ${encoding}`, async () => {
      const url = await fresh(server, `encoding ${encoding} locale '${locale}' template template0`)
      await withStore(url, async (store) => {
        await useAll(store)
        if (encoding === 'SQL_ASCII') return
        const emoji = job({ data: { encoding: 'json', body: '"\u{1F986}"' } })
        await assert.rejects(store.operations.push({ jobs: [emoji] }), { code: 'PayloadNotEncodable' })
      })
    })
  }

  test('read-only by default', async () => {
    const url = await fresh()
    await server.query(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`)
    for (const given of [url, `${url}?target_session_attrs=read-write`, `${url}?listen=off`]) {
      await withStore(given, async (store) => {
        await useAll(store)
        const tx = store.transactions?.begin('q')
        await tx?.query('create temp table t as select 1', [])
        await tx?.rollback()
      })
    }
  })

  test('with objects of our names in a search path that comes before pg_catalog', async () => {
    const url = await fresh()
    const trap = (name: string, args: string) =>
      `create function public.${name}(${args}) returns text language plpgsql as $$ begin raise 'trapped'; end $$`
    await server
      .queryAt(
        url,
        trap('hashtext', 'text'),
        trap('to_json', 'anyelement'),
        trap('installed', ''),
        trap('json_build_array', 'variadic "any"')
          .replace('plpgsql', 'sql')
          .replace(/\$\$.*\$\$/, "$$$$ select 'x' $$$$"),
        trap('pg_backend_pid', ''),
        'create function public.trapped(integer, integer) returns boolean language sql as $$ select false $$',
        'create operator public.= (function = public.trapped, leftarg = integer, rightarg = integer)',
        'create table public.meta (n integer)',
        'create table public.waiting (n integer)',
        `alter role postgres in database ${new URL(url).pathname.slice(1)} set search_path = public, pg_catalog`,
      )
      .catch((error: unknown) => assert.fail(String(error)))
    await withStore(url, useAll)
  })
})

describe('the name of the schema', { skip }, () => {
  test('public: the rights of an application’s own functions stay, and none of them is given away', async () => {
    const url = await fresh()
    await server.queryAt(
      url,
      'create function public.theirs() returns integer language sql as $$ select 1 $$',
      'create function public.secret() returns integer language sql security definer as $$ select 1 $$',
      'revoke execute on function public.secret() from public',
    )
    await server.query('create role millpond_other').catch(() => {})
    const store = await open(url, { schema: 'public' })
    await useAll(store)
    await store.close()
    await server.queryAt(url, "select public.allow('millpond_other', 'worker')")
    const may = (name: string) =>
      server.queryAt(url, `select has_function_privilege('millpond_other', '${name}', 'execute')`)
    assert.equal(await may('public.theirs()'), 't')
    assert.equal(await may('public.secret()'), 'f')
    assert.equal(await may('public.installed()'), 't')
    assert.equal(await may('public.recover()'), 'f')
  })

  test('with tables of others in it: refused, and nothing is changed', async () => {
    const url = await fresh()
    await server.queryAt(url, 'create table public.waiting (n integer)')
    await assert.rejects(open(url, { schema: 'public' }), { code: 'InvalidOption', message: /a schema of its own/ })
    assert.equal(
      await server.queryAt(url, "select count(*) from pg_class where relnamespace = 'public'::regnamespace"),
      '1',
    )
  })

  for (const schema of ['order', 'user', 'left', 'values']) {
    test(`${schema}, a word of SQL, is refused`, async () => {
      const refused = await open(server.url, { schema }).then(
        (store) => store.close(),
        (error: unknown) => error,
      )
      if (schema !== 'values')
        assert.ok(refused instanceof MillpondError && refused.code === 'InvalidOption', String(refused))
    })
  }
})

describe('what grows for ever', { skip }, () => {
  test('places past 2^43, and past the locks’ first round', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      for (const place of [2 ** 43 - 1, 2 ** 43 + 5000, 2 ** 52]) {
        await server.queryAt(url, `select setval('millpond.place', ${place})`)
        await useAll(store)
        await server.queryAt(
          url,
          "select millpond.advance((select id from millpond.queues where name = 'emails'), true)",
        )
        await useAll(store)
      }
    })
  })

  test('fences past 2^31, after crashes without number', async () => {
    const url = await fresh()
    await withStore(url, async (store) => {
      await server.queryAt(url, 'update millpond.meta set fences = 4000000000000', 'delete from millpond.fence_floor')
      await store.operations.push({ jobs: [job()] })
      const [claim] = await claimAll(store)
      assert.ok(claim && claim.fence > 4_000_000_000_000)
      assert.deepEqual(
        await store.operations.extend({ queue: 'emails', lease: 1000, items: [{ ...claim, progress: null }] }),
        ['ok'],
      )
      assert.deepEqual(await store.operations.release({ queue: 'emails', items: [claim] }), ['ok'])
      const [again] = await claimAll(store)
      assert.equal(again?.fence, claim.fence + 1)
      const error = { code: 'Error', name: 'Error', message: 'm' }
      assert.deepEqual(
        await store.operations.fail({
          queue: 'emails',
          items: [{ ...claim, fence: claim.fence + 1, error, delay: 0 }],
        }),
        ['retry'],
      )
    })
  })
})

test('a push in a prepared transaction keeps its queue', { skip }, async () => {
  const url = await fresh()
  await withStore(url, async (store) => {
    await useAll(store)
    while ((await store.operations.remove({ queue: 'emails', limit: 1000 })).more);
    await store.operations.configure({ queue: 'emails', lease: 60_000 })
    await server.queryAt(url, "begin; select millpond.push('emails', '1'); prepare transaction 'pushed'")
    assert.deepEqual(await store.operations.remove({ queue: 'emails', limit: 1000 }), { removed: 0, more: true })
    await server.queryAt(url, "commit prepared 'pushed'")
    assert.equal((await claimAll(store)).length, 1)
    await store.close()
  })
})
