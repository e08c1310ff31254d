/** Journals and parks beside other transactions, by hand, and when their jobs are gone. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { Millpond } from '../../src/index.ts'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { SQL_FILES } from '../../src/stores/postgres/sql-files.ts'
import type { ClaimedJob, NewEntry, Park } from '../../src/values/jobs/records.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf, withStore } from './postgres-fixture.ts'

const entry = (name: string): NewEntry => ({ name, meta: '{}', body: null })
const PARK: Park = { until: null, signals: 0, after: [], entries: [], reason: '"r"' }

async function claimed(store: Store, count: number): Promise<ClaimedJob[]> {
  await store.operations.push({ jobs: Array.from({ length: count }, () => job()) })
  return claimAll(store)
}
const write = (store: Store, jobs: readonly ClaimedJob[], name: string) =>
  store.operations.journal({ queue: 'emails', items: jobs.map((one) => ({ ...one, entries: [entry(name)] })) })
const park = (store: Store, jobs: readonly ClaimedJob[], given: Partial<Park> = {}) =>
  store.operations.release({
    queue: 'emails',
    deferred: true,
    items: jobs.map((one) => ({ ...one, park: { ...PARK, ...given } })),
  })

/** Another program's transaction. */
async function stranger(body: (query: (text: string, values?: unknown[]) => Promise<unknown>) => Promise<void>) {
  const client = new pg.Client({ connectionString: urlOf('postgres') })
  await client.connect()
  try {
    await client.query('begin')
    await body((text, values) => client.query(text, values))
  } finally {
    await client.end()
  }
}

describe('steps beside the transaction of a stranger', { skip: missingReason('postgres') }, () => {
  test('who signals a job holds up no entry and no park of another one', async () => {
    await withStore(async (store, schema) => {
      const jobs = await claimed(store, 6)
      const [, second, , fourth] = jobs
      assert.ok(second && fourth)
      // The flag of the queue is set once and for all.
      assert.deepEqual(await write(store, jobs.slice(0, 1), '=first'), ['ok'])
      await stranger(async (query) => {
        for (const { id } of [second, fourth]) await query(`select ${schema}.signal($1, 'paid', '{}')`, [id])
        assert.deepEqual(await write(store, jobs.slice(0, 3), '=a'), ['ok', 'held', 'ok'])
        assert.deepEqual(await park(store, jobs.slice(3)), ['held', 'ok', 'ok'])
        // The claims stay as they are.
        const extensions = [second, fourth].map(({ id, fence }) => ({ id, fence, progress: null }))
        const extended = store.operations.extend({ queue: 'emails', lease: 60_000, items: extensions })
        assert.deepEqual(await extended, ['ok', 'ok'])
        await query('commit')
      })
      assert.deepEqual(await write(store, [second], '=a'), ['ok'])
      const [page] = await store.operations.entries({ items: [{ id: second.id, after: 0 }] })
      assert.deepEqual(
        page?.entries.map(({ name }) => name.replace(/\/.*/, '')),
        ['!paid', '=a'],
      )
      assert.deepEqual(await park(store, [fourth]), ['ok'])
      assert.equal((await store.operations.find({ ids: [fourth.id] }))[0]?.state, 'waiting')
    })
  })

  test('who is about to end a job holds up no entry and no park of another one', async () => {
    await withStore(async (store, schema) => {
      const jobs = await claimed(store, 4)
      const [, second, third] = jobs
      assert.ok(second && third)
      await stranger(async (query) => {
        await query(`select ${schema}.cancel($1)`, [[second.id, third.id]])
        assert.deepEqual(await write(store, jobs.slice(0, 2), '=a'), ['ok', 'held'])
        assert.deepEqual(await park(store, jobs.slice(2)), ['held', 'ok'])
        await query('commit')
      })
      assert.deepEqual(await write(store, [second], '=a'), ['stale'])
      assert.deepEqual(await park(store, [third]), ['stale'])
    })
  })

  test('who claims, or moves, a parked job is not waited for by signals to other jobs', async () => {
    await withStore(async (store, schema) => {
      const jobs = await claimed(store, 2)
      assert.deepEqual(await park(store, jobs), ['ok', 'ok'])
      const [one, other] = jobs
      assert.ok(one && other)
      await stranger(async (query) => {
        await query(`select from ${schema}.waiting where id = $1 for update`, [one.id])
        const signals = store.operations.signal({ items: jobs.map(({ id }) => ({ id, ...entry(`!go/${id}`) })) })
        const found = async () => (await store.operations.find({ ids: [other.id] }))[0]?.state
        await until(async () => (await found()) === 'waiting', 'the other job')
        await query('commit')
        assert.deepEqual(
          (await signals).map(({ status }) => status),
          ['ok', 'ok'],
        )
      })
      const found = await store.operations.find({ ids: jobs.map(({ id }) => id) })
      assert.deepEqual(
        found.map((record) => [record?.state, record?.journal]),
        [
          ['waiting', 1],
          ['waiting', 1],
        ],
      )
    })
  })

  test('a parent that somebody is about to end, and does not, is looked at by a sweep', async () => {
    await withStore(async (store, schema) => {
      const [parent, child] = await claimed(store, 2)
      assert.ok(parent && child)
      await stranger(async (query) => {
        await query(`select from ${schema}.running where id = $1 for update`, [parent.id])
        assert.deepEqual(await park(store, [child], { after: [parent.id] }), ['ok'])
        await query('commit')
      })
      assert.deepEqual(await store.operations.complete({ queue: 'emails', items: [{ ...parent, result: null }] }), [
        'ok',
      ])
      await store.operations.sweep({ limit: 100 })
      assert.equal((await store.operations.find({ ids: [child.id] }))[0]?.state, 'waiting')
    })
  })
})

describe('handlers with steps beside the transaction of a stranger', { skip: missingReason('postgres') }, () => {
  test('go on: who signals one of them holds up that one alone, until the commit', async () => {
    const schema = newSchema()
    const pond = await Millpond.open(urlOf('postgres'), { schema })
    try {
      const gate = Promise.withResolvers<void>()
      let begun = 0
      const queue = pond.queue<string>('emails')
      queue.work(
        async (_, ctx) => {
          await ctx.step('first', () => void begun++)
          await gate.promise
          await ctx.step('second', () => {})
          return ctx.waitFor('paid')
        },
        { concurrency: 2 },
      )
      const [one, other] = await queue.pushMany(['one', 'other'])
      assert.ok(one && other)
      const state = async (id: string) => (await pond.job(id))?.state
      await until(() => begun === 2, 'both jobs')
      await stranger(async (query) => {
        await query(`select ${schema}.signal($1, 'paid', '1')`, [one.id])
        gate.resolve()
        await until(async () => (await state(other.id)) === 'scheduled', 'the other job is parked')
        assert.equal(await state(one.id), 'running')
        await query('commit')
      })
      await until(async () => (await state(one.id)) === 'done', 'the job that was signalled')
      assert.equal((await pond.job(one.id))?.result, 1)
    } finally {
      await pond.close()
      await dropSchema(schema)
    }
  })
})

describe('a grouped queue', { skip: missingReason('postgres') }, () => {
  test('takes a parked job back into its group, and tells claims of its journal', async () => {
    await withStore(async (store) => {
      await store.operations.configure({ queue: 'emails', groupRunning: 1 })
      await store.operations.push({ jobs: [job({ group: 'a' }), job({ group: 'a' })] })
      const jobs = await claimAll(store)
      const [one] = jobs
      assert.ok(one && jobs.length === 1)
      assert.deepEqual(await park(store, jobs, { entries: [entry('=a')] }), ['ok'])
      const [other] = await claimAll(store)
      assert.ok(other)
      assert.deepEqual([other.journal, await claimAll(store)], [undefined, []])
      const signals = { items: [{ id: one.id, ...entry('!go/1') }] }
      assert.deepEqual(await store.operations.signal(signals), [{ status: 'ok', id: one.id }])
      assert.deepEqual(await claimAll(store), [])
      await store.operations.complete({ queue: 'emails', items: [{ ...other, result: null }] })
      assert.deepEqual(
        (await claimAll(store)).map(({ id, journal }) => [id, journal]),
        [[one.id, 2]],
      )
    })
  })
})

describe('a schema of the release before journals', { skip: missingReason('postgres') }, () => {
  test('is migrated with its jobs', async () => {
    const schema = newSchema()
    const before = [...SQL_FILES].flatMap(([name, text]) => (/^migrations\/00[123]/.test(name) ? [text] : []))
    assert.equal(before.length, 3)
    const [waiting, running] = [job(), job()]
    const row = "0, 0, 1, 5, 4, 'json', 'null'"
    try {
      await server(`create schema ${schema}; ${before.join('').replaceAll(/\bmillpond\b/g, schema)};
        insert into ${schema}.meta (home) values ('');
        insert into ${schema}.queues (name) values ('emails');
        insert into ${schema}.lines (queue, line) values (1, 0), (1, 1);
        insert into ${schema}.waiting (place, id, pushed_at, due_at, queue, attempts, priority, encoding, data)
        values (nextval('${schema}.place'), '${waiting.id}', ${row});
        insert into ${schema}.running (place, id, fence, lease_until, attempt, pushed_at, due_at, queue, attempts, priority, encoding, data)
        values (nextval('${schema}.place'), '${running.id}', 7, 9999999999999, 1, ${row})`)
      const store = await open(urlOf('postgres'), { schema })
      try {
        const held = { ...running, fence: 7 }
        const outcomes = await store.operations.journal({
          queue: 'emails',
          items: [{ ...held, entries: [entry('=a')] }],
        })
        assert.deepEqual(outcomes, ['ok'])
        assert.deepEqual(
          (await store.operations.find({ ids: [waiting.id, running.id] })).map((record) => record?.journal),
          [undefined, 1],
        )
        const [one] = await claimAll(store)
        assert.equal(one?.id, waiting.id)
      } finally {
        await store.close()
      }
    } finally {
      await dropSchema(schema)
    }
  })
})

describe('signals by hand', { skip: missingReason('postgres') }, () => {
  test('wake a parked job with the commit, and tell what became of them', async () => {
    await withStore(async (store, schema) => {
      const [one] = await claimed(store, 1)
      assert.ok(one)
      await park(store, [one])
      const status = async (args: string) => (await server(`select ${schema}.signal(${args}) as status`))[0]?.status
      await stranger(async (query) => {
        await query(`select ${schema}.signal('${one.id}', 'paid')`)
        await query('rollback')
      })
      const state = async () => (await store.operations.find({ ids: [one.id] }))[0]?.state
      assert.equal(await state(), 'scheduled')
      assert.equal(await status(`'${one.id}', 'paid', '{"amount":3}'`), 'ok')
      assert.equal(await state(), 'waiting')
      const [page] = await store.operations.entries({ items: [{ id: one.id, after: 0 }] })
      assert.match(page?.entries[0]?.name ?? '', /^!paid\/[0-9a-f-]{36}$/)
      assert.deepEqual(page?.entries[0]?.body, { encoding: 'json', body: '{"amount":3}' })
      assert.equal(await status("'019b76da-a800-7000-8000-00000000abcd', 'paid'"), 'none')
      await store.operations.cancel({ ids: [one.id] })
      assert.equal(await status(`'${one.id}', 'paid'`), 'ended')
      for (const bad of [`'${one.id}', ''`, `'${one.id}', E'a\\nb'`, `'${one.id}', null`])
        await assert.rejects(status(bad), /InvalidName/)
      await assert.rejects(status(`'${one.id}', 'paid', '"\\ud800"'`), /PayloadNotEncodable/)
    })
  })
})

describe('journals of jobs that are gone', { skip: missingReason('postgres') }, () => {
  const counts = async (schema: string) =>
    (
      await server(`select (select count(*)::int from ${schema}.journals) as journals,
        (select count(*)::int from ${schema}.entries) as entries`)
    )[0]

  test('go with sweeps, a step each; those of jobs that are there stay', async () => {
    const clock = { now: Date.UTC(2026, 0, 1) }
    await withStore(
      async (store, schema) => {
        const jobs = await claimed(store, 50)
        assert.ok((await write(store, jobs, '=a')).every((outcome) => outcome === 'ok'))
        const [kept, dead, ...gone] = jobs
        assert.ok(kept && dead)
        await store.operations.configure({ queue: 'emails', keepDone: 0 })
        await store.operations.complete({
          queue: 'emails',
          items: gone.slice(0, 30).map((one) => ({ ...one, result: null })),
        })
        await store.operations.remove({ ids: gone.slice(30).map(({ id }) => id) })
        await store.operations.cancel({ ids: [dead.id] })
        let calls = 0
        let more = true
        while (more) {
          more = (await store.operations.sweep({ limit: 20 })).more
          calls++
        }
        assert.deepEqual([calls, await counts(schema)], [3, { journals: 2, entries: 2 }])
        // A job that is pushed again with the id of another has a place of its own.
        await store.operations.remove({ ids: [dead.id] })
        await store.operations.push({ jobs: [job({ id: dead.id })] })
        assert.equal((await claimAll(store))[0]?.journal, undefined)
        clock.now += 61_000
        for (let n = 0; n < 3; n++) await store.operations.sweep({ limit: 20 })
        assert.deepEqual(await counts(schema), { journals: 1, entries: 1 })
      },
      { clock: () => clock.now },
    )
  })
})
