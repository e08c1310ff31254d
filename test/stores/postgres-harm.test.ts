/** What a producer can do with the functions that it may call, and what a lost connection does to a handler's transaction. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { Millpond } from '../../src/index.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

describe('a producer', { skip }, () => {
  test('is refused settings and jobs that would harm others', async () => {
    await withStore(async (store, schema) => {
      const bad = [
        `configure('emails', '{"keepDone": 9223372036854775807}')`,
        `configure('emails', '{"keepDead": -1}')`,
        `configure('emails', '{"capacity": 0}')`,
        `configure('emails', '{"attempts": 0}', 'operator')`,
        `configure('emails', '{"lease": 0}')`,
        `configure('emails', '{"backoff": {"factor": 1e300}}')`,
        `configure('emails', '{"backoff": {"jitter": "NaN"}}')`,
        `configure(E'bad\\nname', '{"paused": false}')`,
        `configure('emails', '{"colour": 1}')`,
        `configure('emails', '{"lease": 5000}', 'nobody')`,
        `push_list('emails', array[gen_random_uuid()], array['1'], priority => 100::smallint)`,
        `push_list('emails', array[gen_random_uuid()], array['1'], attempts => 0)`,
        `push_list('emails', array[gen_random_uuid()], array['1'], run_at => 9223372036854775807)`,
        `push_list('emails', array[gen_random_uuid()], array['1', '2'])`,
        `push_jobs('[{"id": "00000000-0000-7000-8000-00000000ffff", "queue": "bad queue", "priority": 4, "data": "j1"}]')`,
        `push('emails', '1', timeout => 3000000000)`,
        `push('emails', '1', delay => 9223372036854775807)`,
      ]
      for (const call of bad) {
        await assert.rejects(
          server(`select ${schema}.${call}`),
          (error: unknown) => {
            const code = error instanceof Error && 'code' in error ? error.code : ''
            return ['22023', '23514'].includes(String(code))
          },
          call,
        )
      }
      await store.operations.push({ jobs: [job()] })
      await store.operations.sweep({ limit: 10 })
      assert.equal((await claimAll(store)).length, 1)
    })
  })

  test('cannot break the answers that others get', async () => {
    await withStore(async (store, schema) => {
      const healthy = job()
      await store.operations.push({ jobs: [healthy] })
      const raw = JSON.stringify([
        { id: '00000000-0000-7000-8000-00000000eeee', queue: 'emails', priority: 4, data: 'j"\u001e\u001f' },
        { id: '00000000-0000-7000-8000-00000000eeef', queue: 'emails', priority: 4, data: 'j{"a', trace: '\u001e"\\' },
      ])
      await server(`select ${schema}.push_jobs($1)`, [raw])
      const claimed = await claimAll(store)
      assert.deepEqual(
        claimed.map(({ data }) => data.body),
        [healthy.data.body, '"\u001e\u001f', '{"a'],
      )
      const holds = claimed.map(({ id, fence }) => ({
        id,
        fence,
        result: { encoding: 'json' as const, body: '"\u001e\u001f"' },
      }))
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: holds }), ['ok', 'ok', 'ok'])
      assert.deepEqual((await store.operations.find({ ids: [healthy.id] }))[0]?.result?.body, '"\u001e\u001f"')
    })
  })

  test('pushes text, json and jsonb', async () => {
    await withStore(async (store, schema) => {
      await server(`select ${schema}.push('emails', '{"n": 1}')`)
      await server(`select ${schema}.push('emails', '{"n": 2}'::json, priority => 3)`)
      await server(`select ${schema}.push('emails', jsonb_build_object('n', 3), priority => 2)`)
      await assert.rejects(server(`select ${schema}.push('emails', 'no JSON')`), { code: '22P02' })
      assert.deepEqual(
        (await claimAll(store)).map(({ data }) => JSON.parse(String(data.body))),
        [{ n: 1 }, { n: 2 }, { n: 3 }],
      )
    })
  })
})

describe('a handler’s transaction whose connection the server ends', { skip }, () => {
  const clients = {
    pg: () => new pg.Pool({ connectionString: urlOf('postgres'), max: 4 }),
    'postgres.js': () => postgres(urlOf('postgres'), { max: 4, onnotice: () => {} }),
  }
  for (const [name, make] of Object.entries(clients)) {
    for (const idle of [true, false]) {
      test(`${name}: ${idle ? 'between two statements' : 'during one'}, fails, and the job runs again`, async () => {
        const schema = newSchema()
        const client = make()
        if (client instanceof pg.Pool) client.on('error', () => {})
        const pond = await Millpond.open(urlOf('postgres'), { schema, client })
        try {
          await server(`create table ${schema}.effects (attempt integer)`)
          const queue = pond.queue<number>('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 0 } } })
          const failures: string[] = []
          queue.work(
            async (one, ctx) => {
              const [row] = await ctx.tx('select pg_backend_pid() as pid')
              await ctx.tx(`insert into ${schema}.effects values ($1)`, [one.attempt])
              if (one.attempt > 1) return
              const sleeping = idle ? undefined : ctx.tx('select pg_sleep(60)')
              sleeping?.catch(() => {})
              if (!idle)
                await until(
                  async () =>
                    (
                      await server(`select 1 from pg_stat_activity where pid = $1 and query like '%pg_sleep%'`, [
                        row?.pid,
                      ])
                    ).length === 1,
                  'the statement to run',
                )
              await server('select pg_terminate_backend($1)', [row?.pid])
              await until(
                async () => (await server('select 1 from pg_stat_activity where pid = $1', [row?.pid])).length === 0,
                'its end',
              )
              await sleeping?.catch((error) => failures.push(String(error)))
              await ctx.tx('select 1').catch((error) => {
                failures.push(String(error))
                throw error
              })
            },
            { transaction: true, concurrency: 1 },
          )
          const { id } = await queue.push(1)
          assert.equal(await pond.result(id, { timeout: '60s' }), undefined)
          assert.ok(failures.length > 0)
          assert.deepEqual(
            (await server(`select attempt from ${schema}.effects`)).map(({ attempt }) => attempt),
            [2],
          )
        } finally {
          await pond.close()
          // postgres.js waits for ever for the connection that listened.
          await (client instanceof pg.Pool ? client.end() : client.end({ timeout: 1 }))
          await dropSchema(schema)
        }
      })
    }
  }
})

test('plain SQL shows what it can, beside bytes and \\u0000', { skip: missingReason('postgres') }, async () => {
  await withStore(async (store, schema) => {
    const bodies = ['{"to":"Ada"}', '{"to":"\\u0000"}', '{"to":{"name":"Bob"}}', '[1]', '"text"']
    await store.operations.push({ jobs: bodies.map((body) => job({ data: { encoding: 'json', body } })) })
    await store.operations.push({ jobs: [job({ data: { encoding: 'bytes', body: new Uint8Array([1, 2]) } })] })
    const rows = await server(
      `select ${schema}.field(data, 'to') as value, ${schema}.field(data, 'to', 'name') as name from ${schema}.jobs order by place`,
    )
    assert.deepEqual(
      rows.map(({ value, name }) => [value, name]),
      [['Ada', null], [null, null], ['{"name":"Bob"}', 'Bob'], ...[4, 5, 6].map(() => [null, null])],
    )
    await server(`do $$ begin create role millpond_reader; exception when duplicate_object then null; end $$`)
    await server(`select ${schema}.allow('millpond_reader', 'reader')`)
    const [row] = await server(
      `select has_function_privilege('millpond_reader', '${schema}.field(text, text[])', 'execute') as reads`,
    )
    assert.equal(row?.reads, true)
  })
})
