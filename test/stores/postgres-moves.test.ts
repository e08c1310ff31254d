/** What pushes note for the counts stays little where no worker sweeps. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { missingReason } from '../servers/shared.ts'
import { job, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

const notes = async (schema: string) =>
  await server(`select becomes, count::integer from ${schema}.moves where was = 'new' order by id`)

test('a call notes its jobs once for each queue and state', { skip }, () =>
  withStore(async (store, schema) => {
    await store.operations.push({
      jobs: [
        ...[job({ queue: 'a', group: 'x' }), job({ queue: 'a', group: 'y' }), job({ queue: 'a', delay: 60_000 })],
        ...[job({ queue: 'b', priority: 9 }), job({ queue: 'a', group: 'z' })],
      ],
    })
    assert.deepEqual(await notes(schema), [
      { becomes: 'waiting', count: 3 },
      { becomes: 'scheduled', count: 1 },
      { becomes: 'waiting', count: 1 },
    ])
    const stats = await store.operations.stats({})
    const counted = stats.map(({ queue, counts, totals }) => [queue, counts.waiting, counts.scheduled, totals.pushed])
    assert.deepEqual(counted.sort(), [
      ['a', 3, 1, 4],
      ['b', 1, 0, 1],
    ])
  }),
)

/** One of so many adds up. */
const EVERY = 1024

for (const [how, call] of [
  ['push_list', (schema) => `push_list('q', array[${schema}.new_id()], array['1'], fresh => true)`],
  [
    'push_jobs',
    (schema) =>
      `push_jobs(json_build_array(json_build_object('id', ${schema}.new_id(), 'queue', 'q', 'priority', 4, 'data', 'j1')))`,
  ],
] as const satisfies [string, (schema: string) => string][]) {
  test(`many calls of ${how} are added up without any sweep`, { skip }, () =>
    withStore(async (store, schema) => {
      const calls = EVERY + 50
      await server(`do $$ begin for n in 1..${calls} loop perform ${schema}.${call(schema)}; commit; end loop; end $$`)
      assert.equal((await notes(schema)).length, 50)
      const [stats] = await store.operations.stats({ queue: 'q' })
      assert.deepEqual([stats?.counts.waiting, stats?.totals.pushed], [calls, calls])
    }),
  )
}

for (const end of ['commit', 'rollback']) {
  test(`while a push adds up, nobody waits for it, and every count is right after its ${end}`, { skip }, () =>
    withStore(async (store, schema) => {
      const push = `select ${schema}.push_list('q', array[${schema}.new_id()], array['1'], fresh => true)`
      const waiting = async () => (await store.operations.stats({ queue: 'q' }))[0]?.counts.waiting
      for (let n = 0; n < 3; n++) await server(push)
      await server(`select setval('${schema}.move', ${EVERY - 1})`)
      const other = new pg.Client({ connectionString: urlOf('postgres') })
      await other.connect()
      try {
        await other.query('begin')
        await other.query(push)
        const { rows } = await other.query(`select count(*)::integer as left from ${schema}.moves where was = 'new'`)
        assert.deepEqual(rows, [{ left: 0 }])
        assert.equal(await waiting(), 3)
        await store.operations.sweep({ limit: 10 })
        await server(push)
        assert.equal(await waiting(), 4)
        await other.query(end)
      } finally {
        await other.end()
      }
      const all = end === 'commit' ? 5 : 4
      assert.equal(await waiting(), all)
      await store.operations.sweep({ limit: 10 })
      assert.equal(await waiting(), all)
      assert.equal((await store.operations.list({ queue: 'q', state: 'waiting', limit: 10 })).jobs.length, all)
    }),
  )
}
