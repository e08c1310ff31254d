/** The PostgreSQL store's connections: how many, cut ones, the caller's own clients, PgBouncer. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import postgres from 'postgres'
import { Millpond } from '../../src/index.ts'
import type { Bell } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, dropSchema, job, newSchema, openPostgres, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

describe('connections', { skip }, () => {
  test('a pond opens no more than it may, however much goes on', async () => {
    const schema = newSchema()
    const name = `count ${schema}`
    const url = new URL(urlOf('postgres'))
    url.searchParams.set('application_name', name)
    url.searchParams.set('connections', '10')
    const pond = await Millpond.open(url, { schema })
    try {
      const queue = pond.queue<number>('q')
      let most = 0
      queue.work(
        async (_, ctx) => {
          await ctx.tx('select pg_sleep(0.01)')
        },
        { transaction: true, concurrency: 40 },
      )
      const pushes = Promise.all(Array.from({ length: 300 }, (_, n) => queue.push(n)))
      await until(async () => {
        const [row] = await server(
          `select count(*)::int as count from pg_stat_activity where application_name in ($1, 'millpond')
          and query like $2`,
          [name, `%${schema}%`],
        )
        most = Math.max(most, Number(row?.count))
        return (await queue.stats()).counts.done === 300
      }, 'all to be done')
      await pushes
      assert.ok(most <= 10, String(most))
    } finally {
      await pond.close()
      await dropSchema(schema)
    }
  })

  /** The first call that writes to the table ends with an SQLSTATE. @returns how many calls wrote to it */
  const failsOnce = async (schema: string, table: string, state: string) => {
    await server(`create sequence ${schema}.tries`)
    await server(`create function ${schema}.fail() returns trigger language plpgsql as $$ begin
      if nextval('${schema}.tries') = 1 then raise 'as told' using errcode = '${state}'; end if; return null; end $$`)
    await server(`create trigger fail before insert on ${schema}.${table} execute function ${schema}.fail()`)
    return async () => Number((await server(`select last_value from ${schema}.tries`))[0]?.last_value)
  }

  test('a claim that the server may have completed (40003) is not made again, one that it undid (40001) is', async () => {
    for (const [state, tries] of [
      ['40003', 1],
      ['40001', 2],
    ] as const) {
      await withStore(async (store, schema) => {
        await store.operations.push({ jobs: [job()] })
        const made = await failsOnce(schema, 'running', state)
        if (state === '40003') await assert.rejects(claimAll(store), { code: 'StoreUnavailable', retryable: true })
        else assert.equal((await claimAll(store)).length, 1)
        assert.equal(await made(), tries)
      })
    }
  })

  test('a push that the server may have completed (40003) is repeated as one whose answer was lost', async () => {
    await withStore(async (store, schema) => {
      const made = await failsOnce(schema, 'waiting', '40003')
      const pushed = await store.operations.push({ jobs: [job()] })
      assert.deepEqual(
        pushed.map(({ status }) => status),
        ['pushed'],
      )
      assert.equal(await made(), 2)
    })
  })

  test('LISTEN is taken up again after its connection was cut, and what was rung meanwhile is not missed', async () => {
    const { store, schema, dispose } = await openPostgres(urlOf('postgres'))
    const other = await open(urlOf('postgres'), { schema })
    try {
      const heard: Bell[] = []
      store.listen((bell) => heard.push(bell))
      const listening = async () =>
        (await server(`select pid from pg_stat_activity where query ilike $1`, [`listen%${schema}%`])).map(
          ({ pid }) => pid,
        )
      await until(async () => (await listening()).length === 1, 'LISTEN')
      const asleep = async () => {
        await claimAll(store)
        return (await server(`select 1 from ${schema}.sleepers`)).length === 1
      }
      await until(asleep, 'the sleeper')
      heard.length = 0
      const [pid] = await listening()
      await server(`select pg_terminate_backend($1)`, [pid])
      await other.operations.push({ jobs: [job()] })
      await until(() => heard.some(({ kind }) => kind === 'work'), 'a bell')
      await until(async () => (await listening()).some((one) => one !== pid), 'LISTEN again')
      await until(asleep, 'the sleeper again')
      heard.length = 0
      await other.operations.push({ jobs: [job()] })
      await until(() => heard.some(({ kind }) => kind === 'work'), 'a bell by the new connection')
    } finally {
      await other.close()
      await dispose()
    }
  })

  test('pushes whose connections are cut are stored once, and said to be', async () => {
    await withStore(async (store, schema) => {
      let going = true
      const cutting = (async () => {
        while (going) {
          // Also those that have just pushed, and may be about to answer.
          await server(
            `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query like $1 limit 1`,
            [`%${schema}.push%`],
          )
          await sleep(100)
        }
      })()
      const jobs: NewJob[] = []
      const outcomes: unknown[] = []
      const notes = async () => (await server(`select 1 from ${schema}.repeats`)).length
      try {
        // Only one that was on its way when its connection was cut is made again.
        await until(async () => {
          const some = Array.from({ length: 100 }, () => job({ fresh: true }))
          jobs.push(...some)
          for (const one of some) outcomes.push((await store.operations.push({ jobs: [one] }))[0])
          return (await notes()) > 0
        }, 'a push that was noted down before it was made again')
      } finally {
        going = false
        await cutting
      }
      assert.deepEqual(
        outcomes,
        jobs.map(({ id }) => ({ status: 'pushed', id })),
      )
      assert.equal((await store.operations.stats({}))[0]?.counts.waiting, jobs.length)
    })
  })
})

describe('clients of the caller’s', { skip }, () => {
  const clients: Record<string, () => { client: unknown; end: () => Promise<void> }> = {
    'postgres.js': () => {
      const client = postgres(urlOf('postgres'), { max: 3, onnotice: () => {} })
      return { client, end: () => client.end() }
    },
    pg: () => {
      const client = new pg.Pool({ connectionString: urlOf('postgres'), max: 3 })
      client.on('error', () => {})
      return { client, end: () => client.end() }
    },
  }
  for (const [name, make] of Object.entries(clients)) {
    test(`${name}: the store works on it, hears bells, and leaves it open`, async () => {
      const { client, end } = make()
      const { store, schema, dispose } = await openPostgres(urlOf('postgres'), { client })
      const other = await open(urlOf('postgres'), { schema })
      try {
        const heard: Bell[] = []
        store.listen((bell) => heard.push(bell))
        const rare = job({
          key: 'k',
          group: 'g',
          trace: 't',
          timeout: 5,
          data: { encoding: 'bytes', body: Uint8Array.of(0, 255) },
        })
        await store.operations.push({ jobs: [job(), rare] })
        const jobs = await claimAll(store)
        assert.deepEqual(jobs[1]?.data, rare.data)
        await store.operations.complete({
          queue: 'emails',
          items: jobs.map(({ id, fence }) => ({ id, fence, result: { encoding: 'json', body: '"r"' } })),
        })
        assert.deepEqual((await store.operations.find({ ids: [rare.id] }))[0]?.result, {
          encoding: 'json',
          body: '"r"',
        })
        await until(async () => {
          await claimAll(store)
          return (await server(`select 1 from ${schema}.sleepers`)).length === 1
        }, 'the sleeper')
        heard.length = 0
        await other.operations.push({ jobs: [job()] })
        await until(() => heard.some(({ kind }) => kind === 'work'), 'a bell')
        const transaction = store.transactions?.begin('q')
        assert.deepEqual(await transaction?.query('select 1 as one'), [{ one: 1 }])
        await transaction?.rollback()
      } finally {
        await other.close()
        await dispose()
        await end()
      }
    })
  }
})

describe('behind PgBouncer', { skip: missingReason('pgbouncer') }, () => {
  test('it is found out, and bells come by looking', async () => {
    const { store, schema, dispose } = await openPostgres(urlOf('pgbouncer'))
    const other = await open(urlOf('postgres'), { schema })
    try {
      const heard: Bell[] = []
      store.listen((bell) => heard.push(bell))
      await other.operations.push({ jobs: [job()] })
      await until(() => heard.some(({ kind, queue }) => kind === 'work' && queue === 'emails'), 'a bell')
      const [one] = await claimAll(store)
      assert.ok(one)
      assert.equal((await server(`select 1 from ${schema}.sleepers`)).length, 0)
      heard.length = 0
      await other.operations.complete({ queue: 'emails', items: [{ ...one, result: null }] })
      await until(() => heard.some(({ kind }) => kind === 'finished'), 'a bell')
    } finally {
      await other.close()
      await dispose()
    }
  })
})
