/** What is particular to the PostgreSQL store: its schema, its SQL interface, its roles and segments. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'
import postgres from 'postgres'
import { Millpond } from '../../src/index.ts'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, dropSchema, job, newSchema, openPostgres, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const run = promisify(execFile)

describe('opening', { skip }, () => {
  test('bad options are refused by name', async () => {
    const bad: [string, StoreOptions, RegExp][] = [
      ['postgres://h/d?schema=Bad-Name', {}, /schema/],
      ['postgres://h/d?connections=11', {}, /connections/],
      ['postgres://h/d?listen=maybe', {}, /listen/],
      ['postgres://h/d?pgbouncer=yes', {}, /pgbouncer/],
      ['postgres://h/d', { poll: 0 }, /poll/],
      ['postgres://h/d', { client: {} }, /client/],
      ['postgres://h/d', { noSuchOption: 1 }, /noSuchOption/],
      ['postgres://[', {}, /URL/],
    ]
    for (const [url, options, message] of bad) {
      await assert.rejects(open(url, options), (error) => {
        assert.ok(isMillpondError(error, 'InvalidOption'), String(error))
        assert.match(error.message, message)
        return true
      })
    }
  })

  test('a server that is not there is StoreUnavailable', async () => {
    await assert.rejects(open('postgres://127.0.0.1:1/none', {}), (error) => isMillpondError(error, 'StoreUnavailable'))
  })

  test('several processes at once install the schema once, and all can use it', async () => {
    const schema = newSchema()
    const code = `
      const { open } = await import(${JSON.stringify(new URL('../../src/stores/postgres/index.ts', import.meta.url).href)})
      const store = await open(${JSON.stringify(urlOf('postgres'))}, { schema: ${JSON.stringify(schema)} })
      await store.operations.configure({ queue: 'q' + process.argv[1], paused: true })
      await store.close()`
    try {
      const processes = [1, 2, 3, 4, 5].map((n) =>
        run(process.execPath, ['--input-type=module', '-e', code, String(n)], { timeout: 30_000 }),
      )
      await Promise.all(processes)
      const [row] = await server(`select count(*)::int as queues, (select count(*)::int from ${schema}.meta) as metas
        from ${schema}.queues`)
      assert.deepEqual({ ...row }, { queues: 5, metas: 1 })
    } finally {
      await dropSchema(schema)
    }
  })

  test('a schema of a newer version is StoreVersion, other functions of this version are laid down anew', async () => {
    await withStore(async (_, schema) => {
      await server(`update ${schema}.meta set operations = 'other'`)
      await (await open(urlOf('postgres'), { schema })).close()
      const [row] = await server(`select operations from ${schema}.meta`)
      assert.match(String(row?.operations), /^[0-9a-f]{64}$/)
      await server(`update ${schema}.meta set version = 1000`)
      await assert.rejects(open(urlOf('postgres'), { schema }), (error) => isMillpondError(error, 'StoreVersion'))
    })
  })

  test('a migration goes through while others work', async () => {
    await withStore(async (store, schema) => {
      let working = true
      const worker = (async () => {
        let finished = 0
        while (working) {
          await store.operations.push({ jobs: [job(), job()] })
          const jobs = await claimAll(store)
          const ended = await store.operations.complete({
            queue: 'emails',
            items: jobs.map(({ id, fence }) => ({ id, fence, result: null })),
          })
          finished += ended.filter((outcome) => outcome === 'ok').length
        }
        return finished
      })()
      for (let round = 0; round < 5; round++) {
        await server(`update ${schema}.meta set operations = 'other'`)
        await (await open(urlOf('postgres'), { schema })).close()
      }
      working = false
      assert.ok((await worker) > 0)
    })
  })
})

describe('the SQL interface', { skip }, () => {
  test('a push by plain SQL, in its own transaction, reaches a worker that sleeps', async () => {
    const schema = newSchema()
    const pond = await Millpond.open(urlOf('postgres'), { schema })
    try {
      const seen: unknown[] = []
      pond.queue('emails').work((one) => void seen.push(one.data))
      await until(async () => {
        const rows = await server(`select 1 from ${schema}.sleepers`)
        return rows.length > 0
      }, 'the worker to sleep')
      const sql = new pg.Client(urlOf('postgres'))
      await sql.connect()
      try {
        await sql.query('begin')
        await sql.query(`select ${schema}.push('emails', '{"to":"a@example.org"}')`)
        await sql.query(`select ${schema}.push(queue => 'emails', data => '[1]', priority => 9, key => 'k')`)
        assert.equal(seen.length, 0)
        await sql.query('commit')
      } finally {
        await sql.end()
      }
      await until(() => seen.length === 2, 'both jobs')
      assert.deepEqual(seen, [[1], { to: 'a@example.org' }])
    } finally {
      await pond.close()
      await dropSchema(schema)
    }
  })

  test('delay, key, group, attempts and id are kept, bad ones refused', async () => {
    await withStore(async (store, schema) => {
      const id = '019b76da-a800-7000-8000-00000000abcd'
      const [first] = await server(
        `select ${schema}.push('emails', '1', delay => 60000, key => 'k', "group" => 'g', attempts => 2, timeout => 5, id => $1::uuid) as id`,
        [id],
      )
      assert.equal(first?.id, id)
      const [second] = await server(`select ${schema}.push('emails', '2', key => 'k') as id`)
      assert.equal(second?.id, id, 'the job that has the key')
      const [record] = await store.operations.find({ ids: [id] })
      assert.deepEqual(
        [record?.state, record?.key, record?.group, record?.attempts, record?.timeout],
        ['scheduled', 'k', 'g', 2, 5],
      )
      await store.operations.configure({ queue: 'emails', capacity: 1 })
      const [full] = await server(`select ${schema}.push('emails', '3') as id`)
      assert.equal(full?.id, null)
      const bad = [
        `'bad queue', '1'`,
        `'q', '{'`,
        `'q', null`,
        `'q', '1', priority => 10`,
        `'q', '1', delay => -1`,
        `'q', '1', key => ''`,
      ]
      for (const args of bad) await assert.rejects(server(`select ${schema}.push(${args})`), args)
    })
  })

  test('ids made in SQL are UUIDs of version 7, of now', async () => {
    await withStore(async (_, schema) => {
      const [row] = await server(`select ${schema}.new_id() as id`)
      const id = String(row?.id)
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.ok(Math.abs(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) - Date.now()) < 60_000)
    })
  })
})

describe('roles', { skip }, () => {
  /** A store opened by a fresh role that was allowed a duty. */
  async function asRole(duty: string | undefined, body: (open: () => Promise<Store>, owner: Store) => Promise<void>) {
    const { store, schema, dispose } = await openPostgres(urlOf('postgres'))
    const role = `${schema}_role`
    const url = new URL(urlOf('postgres'))
    url.username = role
    url.password = 'secret'
    await server(`create role ${role} login password 'secret'`)
    if (duty !== undefined) await server(`select ${schema}.allow('${role}', '${duty}')`)
    const opened: Store[] = []
    try {
      const openAs = async () => {
        const one = await open(url, { schema })
        opened.push(one)
        return one
      }
      await body(openAs, store)
    } finally {
      await Promise.all(opened.map((one) => one.close()))
      await dispose()
      await server(`drop owned by ${role}; drop role ${role}`)
    }
  }
  const unavailable = (error: unknown) => isMillpondError(error, 'StoreUnavailable')

  test('a worker may do all that libraries do, and touch no table', async () => {
    await asRole('worker', async (openAs) => {
      const store = await openAs()
      await store.operations.push({ jobs: [job({ key: 'k' }), job({ queue: 'other' })] })
      const [one] = await claimAll(store)
      assert.ok(one)
      await store.operations.extend({ queue: 'emails', lease: 1000, items: [{ ...one, progress: null }] })
      const step = { name: '=a', meta: '{}', body: null }
      assert.deepEqual(await store.operations.journal({ queue: 'emails', items: [{ ...one, entries: [step] }] }), [
        'ok',
      ])
      const [page] = await store.operations.entries({ items: [{ id: one.id, after: 0 }] })
      assert.deepEqual(page, { entries: [{ n: 1, ...step }], more: false })
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: [{ ...one, result: null }] }), ['ok'])
      await store.operations.sweep({ limit: 10 })
      assert.equal((await store.operations.stats({})).length, 2)
      const { jobs: done } = await store.operations.list({ queue: 'emails', state: 'done', limit: 10 })
      const ids = done.map(({ id }) => id)
      assert.deepEqual(await store.operations.update({ items: [{ id: one.id, priority: 1 }] }), ['done'])
      assert.deepEqual(await store.operations.remove({ ids }), { removed: 1, more: false })
      assert.deepEqual(await store.operations.restore({ records: done }), ['restored'])
      assert.ok(await store.operations.settings({ queue: 'emails' }))
      const worker = { id: 'w', queue: 'emails', host: 'h', pid: 1, slots: 1, busy: 0 }
      assert.deepEqual(await store.operations.heartbeat({ workers: [worker], gone: [] }), [true])
      assert.equal((await store.operations.workers({})).length, 1)
      assert.deepEqual(await store.operations.remove({ queue: 'other', limit: 10 }), { removed: 1, more: false })
      const tx = store.transactions?.begin('q')
      await assert.rejects(async () => tx?.query('delete from millpond.waiting'))
      await tx?.rollback()
    })
  })

  test('a reader may look at jobs and their entries', async () => {
    await withStore(async (store, schema) => {
      await store.operations.push({ jobs: [job()] })
      const role = `${schema}_reader`
      await server(`create role ${role}`)
      try {
        await server(`select ${schema}.allow('${role}', 'reader')`)
        const asReader = (statement: string) =>
          server(`set role ${role}; ${statement}`).finally(() => server('reset role'))
        await asReader(`select ${schema}.entries(array(select id from ${schema}.jobs), '{0}')`)
        await assert.rejects(asReader(`select ${schema}.signal(id, 'go') from ${schema}.jobs`), /permission denied/)
      } finally {
        await server(`drop owned by ${role}; drop role ${role}`)
      }
    })
  })

  test('a producer may push and signal, and nothing else', async () => {
    await asRole('producer', async (openAs, owner) => {
      const store = await openAs()
      const pushed = job()
      await store.operations.configure({ queue: 'emails', capacity: 10 })
      assert.equal((await store.operations.push({ jobs: [pushed, job({ key: 'k' })] }))[0]?.status, 'pushed')
      const signal = { id: pushed.id, name: '!go/1', meta: '{}', body: null }
      assert.equal((await store.operations.signal({ items: [signal] }))[0]?.status, 'ok')
      for (const call of [
        () => claimAll(store),
        () => store.operations.entries({ items: [{ id: pushed.id, after: 0 }] }),
        () => store.operations.find({ ids: [pushed.id] }),
        () => store.operations.cancel({ ids: [pushed.id] }),
        () => store.operations.update({ items: [{ id: pushed.id, priority: 1 }] }),
        () => store.operations.remove({ ids: [pushed.id] }),
        () => store.operations.restore({ records: [] }),
        () => store.operations.list({ queue: 'emails', state: 'waiting', limit: 1 }),
        () => store.operations.heartbeat({ workers: [], gone: [] }),
        () => store.operations.sweep({ limit: 1 }),
      ]) {
        await assert.rejects(call, unavailable)
      }
      assert.equal((await claimAll(owner)).length, 2)
    })
  })

  test('whoever was allowed nothing gets a message that says what to do', async () => {
    await asRole(undefined, async (openAs) => {
      await assert.rejects(openAs(), (error) => unavailable(error) && /role/.test(String(error)))
    })
  })
})

describe('done jobs', { skip }, () => {
  test('fill segments in turn, which are emptied whole once all in them was kept long enough', async () => {
    const clock = { now: Date.UTC(2026, 0, 1) }
    await withStore(
      async (store, schema) => {
        await store.operations.configure({ queue: 'emails', keepDone: 3_600_000 })
        const segments = async () =>
          (
            await server(`select segment, count(*)::int as count from ${schema}.done group by segment order by segment`)
          ).map(({ segment, count }) => [segment, count])
        const finish = async (count: number) => {
          // Large ones, so that no segment is small enough to be cleaned row by row.
          const body = JSON.stringify(
            'x'.repeat(1_000_000).replaceAll('x', () => Math.random().toString(36).slice(2, 12)),
          )
          const jobs = Array.from({ length: count }, () =>
            job({ data: { encoding: 'json', body: body.slice(0, 1_000_000) } }),
          )
          for (const one of jobs) await store.operations.push({ jobs: [one] })
          const claimed = await claimAll(store)
          await store.operations.complete({
            queue: 'emails',
            items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
          })
          return jobs.map(({ id }) => id)
        }
        await store.operations.sweep({ limit: 1 })
        const first = await finish(2)
        // As if they were ten megabytes: relation sizes do not count what is stored aside.
        await server(`insert into ${schema}.done (place, pushed_at, due_at, id, queue, attempts, priority, encoding, data, finished_at, segment)
          select -n, 0, 0, gen_random_uuid(), 1, 1, 4, 'json', repeat('x', 1000), ${clock.now}, 0 from generate_series(1, 9000) as n`)
        clock.now += 600_000
        await store.operations.sweep({ limit: 1000 })
        const second = await finish(1)
        assert.deepEqual(await segments(), [
          [0, 9002],
          [1, 1],
        ])
        clock.now += 61_000
        await store.operations.sweep({ limit: 1000 })
        // Kept long enough, row by row, but the segment is not over yet.
        clock.now += 3_600_000 - 661_000
        await store.operations.sweep({ limit: 1000 })
        assert.equal((await segments())[0]?.[1], 9002)
        assert.equal((await store.operations.push({ jobs: [job({ id: first[0] ?? '' })] }))[0]?.status, 'existing')
        clock.now += 600_000
        await store.operations.sweep({ limit: 1000 })
        assert.deepEqual(await store.operations.find({ ids: first }), [null, null])
        assert.equal((await store.operations.find({ ids: second }))[0]?.state ?? 'gone', 'gone')
        const [stats] = await store.operations.stats({})
        assert.ok((stats?.counts.done ?? 0) <= 0)
      },
      { clock: () => clock.now },
    )
  })
})

describe('order under way', { skip }, () => {
  test('a push that commits late, behind what was claimed meanwhile, is found', async () => {
    await withStore(async (store, schema) => {
      const admin = postgres(urlOf('postgres'), { max: 1, onnotice: () => {} })
      try {
        const late = job()
        await admin.begin(async (tx) => {
          await store.transactions?.push({ tx, jobs: [late] })
          // Far ahead of it, so that the marks would pass it if they did not know of it.
          for (let round = 0; round < 30; round++) {
            await store.operations.push({ jobs: Array.from({ length: 500 }, () => job()) })
            let left = 500
            while (left > 0) left -= (await claimAll(store, 500)).length
          }
          assert.deepEqual(await claimAll(store), [])
        })
        assert.deepEqual(
          (await claimAll(store)).map(({ id }) => id),
          [late.id],
        )
        // The marks go on with one of the next few thousand claims.
        for (let round = 0; round < 9; round++) {
          await store.operations.push({ jobs: Array.from({ length: 500 }, () => job()) })
          assert.equal((await claimAll(store, 500)).length, 500)
        }
        const [row] = await server(`select places[6]::int as mark from ${schema}.lines where line = 0`)
        assert.ok(Number(row?.mark) >= 1)
      } finally {
        await admin.end()
      }
    })
  })
})
