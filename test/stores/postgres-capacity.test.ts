/** Queues with a capacity: a batch that fits takes its room once, as cheaply as one without. Calls for several of them take turns. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { job, server, urlOf, withStore } from './postgres-fixture.ts'

const batch = (count: number) => Array.from({ length: count }, () => job({ queue: 'q', fresh: true }))

test(
  'a batch that fits is stored at once; of one that does not, the first jobs are',
  { skip: missingReason('postgres') },
  () =>
    withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'q', capacity: 250 })
      const statuses = async (count: number) => {
        const tally: Record<string, number> = {}
        for (const { status } of await store.operations.push({ jobs: batch(count) }))
          tally[status] = (tally[status] ?? 0) + 1
        return tally
      }
      assert.deepEqual(await statuses(200), { pushed: 200 })
      // A row of counts per statement, so job by job there would be 200.
      const [counted] = await server(`select count(*)::integer as rows from ${schema}.moves where was = 'new'`)
      assert.equal(counted?.rows, 1)
      assert.deepEqual(await statuses(100), { pushed: 50, full: 50 })
      assert.deepEqual(await statuses(5), { full: 5 })
      const [{ counts } = { counts: undefined }] = await store.operations.stats({ queue: 'q' })
      assert.equal(counts?.waiting, 250)
    }),
)

describe('two calls that name two such queues in two orders do not wait for each other', {
  skip: missingReason('postgres'),
}, () => {
  const jobs = (...queues: string[]) =>
    JSON.stringify(
      queues.map((queue, at) => ({
        ...{ id: randomUUID(), queue, priority: 4, data: 'j1', fresh: true },
        ...(at === 1 && { queue: 'keyed', key: queue }),
      })),
    )
  const firings = (...given: [name: string, queue: string][]) =>
    JSON.stringify(
      given.map(([name, queue]) => ({ name, version: '1', expected: 1, next: null, jobs: JSON.parse(jobs(queue)) })),
    )

  /** Each call stops at what `held` locks, when it has dealt with its first queue. */
  async function race(schema: string, held: string, calls: readonly string[]): Promise<unknown[]> {
    const clients = [0, 1, 2].map(() => new pg.Client(urlOf('postgres')))
    const [holder, ...callers] = clients as [pg.Client, pg.Client, pg.Client]
    await Promise.all(clients.map((client) => client.connect()))
    const waiting = 'select from pg_stat_activity where wait_event_type = $1 and query like $2'
    try {
      await holder.query('begin')
      await holder.query(held)
      const answers = Promise.all(
        callers.map(
          async (caller, at) => Object.values((await caller.query(`select ${schema}.${calls[at]}`)).rows[0])[0],
        ),
      )
      answers.catch(() => {})
      await until(
        async () => (await server(waiting, ['Lock', `select ${schema}.%`])).length === 2,
        'both calls to wait',
      )
      await holder.query('rollback')
      return await answers
    } finally {
      await Promise.all(clients.map((client) => client.end()))
    }
  }

  const withQueues = (body: (schema: string) => Promise<void>) =>
    withStore(async (store, schema) => {
      for (const queue of ['a', 'b']) await store.operations.configure({ queue, capacity: 10 })
      await store.operations.configure({ queue: 'keyed', keepDone: 1 })
      await body(schema)
    })

  test('pushes', () =>
    withQueues(async (schema) => {
      const held = `insert into ${schema}.keys select id, key, gen_random_uuid() from ${schema}.queues, unnest(array['k1', 'k2']) as key
        where name = 'keyed'`
      const answers = await race(schema, held, [
        `push_jobs('${jobs('a', 'k1', 'b')}')`,
        `push_jobs('${jobs('b', 'k2', 'a')}')`,
      ])
      assert.deepEqual(
        answers.flat().map((answer) => String(answer).split(' ')[0]),
        Array(6).fill('pushed'),
      )
    }))

  test('pushes of several keys', () =>
    withQueues(async (schema) => {
      const keyed = (...keys: string[]) =>
        JSON.stringify(
          keys.map((key) => ({ id: randomUUID(), queue: 'keyed', priority: 4, data: 'j1', fresh: true, key })),
        )
      await server(`select ${schema}.push_jobs($1)`, [keyed('there')])
      const held = `insert into ${schema}.keys select id, 'held', gen_random_uuid() from ${schema}.queues where name = 'keyed'`
      const answers = await race(schema, held, [
        `push_jobs('${keyed('y', 'there', 'held', 'x', 'y')}')`,
        `push_jobs('${keyed('x', 'held', 'there', 'y')}')`,
      ])
      const outcomes = answers.flat().map((answer) => String(answer).split(' ')[0])
      // Each key went to one of the calls, whichever came first.
      assert.deepEqual(outcomes.toSorted(), [...Array(6).fill('existing'), ...Array(3).fill('pushed')])
      const [stored] = await server(`select count(*)::integer as jobs from ${schema}.waiting`)
      assert.equal(stored?.jobs, 4)
    }))

  test('firings', () =>
    withQueues(async (schema) => {
      await server(`insert into ${schema}.schedules
        (name, version, "when", tz, missed, jitter, paused, next_at, changed_at, seen_at, job)
        select name, '1', '@daily', 'UTC', 'once', 0, false, 1, 0, 0, '{}' from unnest(array['s1', 's2', 's3', 's4']) as name`)
      const held = `select from ${schema}.schedules where name in ('s3', 's4') for update`
      const answers = await race(schema, held, [
        `fire('${firings(['s1', 'a'], ['s3', 'b'])}')`,
        `fire('${firings(['s2', 'b'], ['s4', 'a'])}')`,
      ])
      assert.deepEqual(
        answers.flat().map((answer) => (answer as { status: string }).status),
        Array(4).fill('fired'),
      )
    }))
})
