/** Limits on PostgreSQL: several clients at once, groups that cost nothing while they are blocked, backlogs from before. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { job, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')
const EPOCH = Date.UTC(2026, 0, 1)

async function pushAll(store: Store, count: number, groupOf: (n: number) => string | null): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const numbers = Array.from({ length: Math.min(500, count - from) }, (_, n) => from + n)
    await store.operations.push({ jobs: numbers.map((n) => job({ queue: 'q', group: groupOf(n), fresh: true })) })
  }
}

const claimOf = (store: Store, limit: number) =>
  store.operations.claim({ queue: 'q', worker: 'w', limit, lease: 60_000 })

/** Opens further stores on the schema, and closes them at the end. */
async function withMore(schema: string, count: number, body: (stores: Store[]) => Promise<void>): Promise<void> {
  const stores = await Promise.all(Array.from({ length: count }, () => open(urlOf('postgres'), { schema })))
  try {
    await body(stores)
  } finally {
    await Promise.all(stores.map((store) => store.close()))
  }
}

describe('limits', { skip }, () => {
  test('hold while several clients claim, and every job is done once', { timeout: 120_000 }, async () => {
    await withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'q', running: 150, groupRunning: 2 })
      const total = 4000
      await pushAll(store, total, (n) => `g${n % 100}`)
      await withMore(schema, 3, async (stores) => {
        const running = new Map<string, number>()
        const done = new Set<string>()
        let all = 0
        const change = (group: string | null, by: number) => {
          const count = (running.get(group ?? '') ?? 0) + by
          running.set(group ?? '', count)
          all += by
          assert.ok(count <= 2, `${count} of ${group} at once`)
          assert.ok(all <= 150, `${all} at once`)
        }
        const work = async (client: Store) => {
          while (done.size < total) {
            const { jobs } = await claimOf(client, 40)
            for (const { group } of jobs) change(group, 1)
            for (const { id } of jobs) {
              assert.ok(!done.has(id), 'claimed twice')
              done.add(id)
            }
            await new Promise(setImmediate)
            for (const { group } of jobs) change(group, -1)
            const completions = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
            if (jobs.length > 0) await client.operations.complete({ queue: 'q', items: completions })
          }
        }
        await Promise.all(stores.flatMap((client) => [work(client), work(client)]))
      })
      const [stats] = await store.operations.stats({ queue: 'q' })
      assert.deepEqual([stats?.counts.done, stats?.counts.running, stats?.counts.waiting], [total, 0, 0])
    })
  })

  test('of lost workers are free again when their leases end', async () => {
    const clock = { now: EPOCH }
    await withStore(
      async (store) => {
        await store.operations.configure({ queue: 'q', groupRunning: 2 })
        await pushAll(store, 8, (n) => `g${n % 2}`)
        assert.equal((await claimOf(store, 10)).jobs.length, 4)
        assert.equal((await claimOf(store, 10)).jobs.length, 0)
        clock.now += 60_000
        assert.equal((await store.operations.sweep({ limit: 100 })).lost.length, 4)
        assert.equal((await claimOf(store, 10)).jobs.length, 4)
      },
      { clock: () => clock.now },
    )
  })

  for (const rate of ['rate', 'groupRate'] as const) {
    test(`a ${rate} that was raised: stats tell when the next claim starts what was given back`, async () => {
      await withStore(
        async (store) => {
          await store.operations.configure({ queue: 'q', [rate]: { count: 1, per: 40_000, burst: null } })
          await pushAll(store, 1, () => 'g')
          const [held] = (await claimOf(store, 1)).jobs
          assert.ok(held)
          await store.operations.configure({ queue: 'q', [rate]: { count: 1, per: 10_000, burst: 2 } })
          await store.operations.release({ queue: 'q', items: [held] })
          assert.equal((await store.operations.stats({ queue: 'q' }))[0]?.nextStart, 0)
          const groups = await store.operations.groups?.({ queue: 'q', limit: 1 })
          assert.deepEqual(
            groups?.map(({ nextStart }) => nextStart),
            rate === 'rate' ? [] : [0],
          )
          assert.equal((await claimOf(store, 1)).jobs.length, 1)
        },
        { clock: () => EPOCH },
      )
    })
  }

  test('a rate is exact over two clients', async () => {
    const clock = { now: EPOCH }
    await withStore(
      async (store, schema) => {
        await store.operations.configure({ queue: 'q', rate: { count: 100, per: 1000, burst: 5 } })
        await pushAll(store, 300, () => null)
        const other = await open(urlOf('postgres'), { schema, clock: () => clock.now })
        let started = 0
        for (let ms = 0; ms < 1000; ms += 10) {
          const claims = await Promise.all([store, other, store, other].map((client) => claimOf(client, 20)))
          started += claims.reduce((sum, { jobs }) => sum + jobs.length, 0)
          assert.equal(started, 5 + ms / 10, `after ${ms} ms`)
          clock.now += 10
        }
        await other.close()
      },
      { clock: () => clock.now },
    )
  })

  test('blocked groups cost a claim nothing', { timeout: 120_000 }, async () => {
    await withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'q', groupRunning: 1 })
      await store.operations.limitGroup?.({
        queue: 'q',
        group: 'free',
        limits: { running: 100, rate: null, weight: 1 },
      })
      /** Rows that a claim reads, undone again. Each on a connection of its own, whose figures begin at 0. */
      const cost = async () => {
        const client = new pg.Client({ connectionString: urlOf('postgres') })
        await client.connect()
        try {
          await pushAll(store, 2, () => 'free')
          await client.query('begin')
          const claimed = await client.query(`select jobs from ${schema}.claim('q', 'w', 1)`)
          assert.match(claimed.rows[0].jobs, /"free"/)
          const read = `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as rows
            from pg_stat_xact_user_tables where schemaname = $1`
          const { rows } = await client.query(read, [schema])
          return Number(rows[0].rows)
        } finally {
          await client.end()
        }
      }
      const alone = await cost()
      await pushAll(store, 20_000, (n) => `g${n % 10_000}`)
      while ((await claimOf(store, 2000)).jobs.length > 0);
      const beside = await cost()
      assert.ok(beside < alone * 2, `${beside} rows beside 10,000 blocked groups, ${alone} without`)
    })
  })

  test('claims of a grouped queue follow each other, and the next one sees what came during the first', async () => {
    await withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'q', groupRunning: 1 })
      await pushAll(store, 8, (n) => `g${n % 4}`)
      const client = new pg.Client({ connectionString: urlOf('postgres') })
      await client.connect()
      try {
        await client.query('begin')
        const { rows } = await client.query(`select jobs from ${schema}.claim('q', 'w', 1)`)
        assert.match(rows[0].jobs, /"g0"/)
        const next = claimOf(store, 10)
        const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}.claim%'`
        await until(async () => (await server(waiting)).length > 0, 'the second claim waits')
        // Neither waits for the claim.
        await store.operations.limitGroup?.({ queue: 'q', group: 'g1', limits: { running: 2, rate: null, weight: 1 } })
        await pushAll(store, 1, () => 'new')
        await client.query('commit')
        const groups = (await next).jobs.map(({ group }) => group)
        assert.deepEqual(groups.sort(), ['g1', 'g1', 'g2', 'g3', 'new'])
      } finally {
        await client.end()
      }
    })
  })

  test('a backlog from before is moved into lines by claims', async () => {
    await withStore(async (store) => {
      await pushAll(store, 3500, (n) => `g${n % 7}`)
      await store.operations.configure({ queue: 'q', groupRunning: 3 })
      const first = await claimOf(store, 100)
      assert.equal(first.retryAfter, 0)
      const most = new Map<string | null, number>()
      for (const { group } of first.jobs) most.set(group, (most.get(group) ?? 0) + 1)
      for (let round = 0; round < 4; round++) {
        for (const { group } of (await claimOf(store, 100)).jobs) most.set(group, (most.get(group) ?? 0) + 1)
      }
      assert.deepEqual(
        [...most.values()],
        Array.from({ length: 7 }, () => 3),
      )
      const groups = (await store.operations.groups?.({ queue: 'q', limit: 10 })) ?? []
      assert.deepEqual(
        groups.map(({ waiting, running }) => [waiting, running]),
        Array.from({ length: 7 }, () => [497, 3]),
      )
    })
  })

  test('to place arrivals reads no other group’s ticket', { timeout: 120_000 }, async () => {
    await withStore(async (owner, schema) => {
      await owner.operations.configure({ queue: 'q', groupRunning: 1 })
      const [few, most, calls] = [10, 10_000, 3]
      // One connection for all, whose plans are made while there are few groups.
      const store = await open(urlOf('postgres'), { schema })
      await pushAll(owner, few, (n) => `few${n}`)
      for (let n = 0; n < few; n++) assert.equal((await claimOf(store, 1)).jobs.length, 1)
      await pushAll(owner, calls * most, (n) => `g${n}`)
      for (let n = 0; n < calls; n++) assert.equal((await claimOf(store, 1)).jobs.length, 1)
      // Closing it makes the server's processes report what they have counted.
      await store.close()
      const stats = async (columns: string, view: string) => {
        const [row] = await server(`select ${columns} as sum from ${view} where schemaname = $1`, [schema])
        return Number(row?.sum)
      }
      await until(async () => {
        const groups = `sum(n_tup_ins) filter (where relname = 'groups')`
        return (await stats(groups, 'pg_stat_user_tables')) === few + calls * most
      }, 'the groups are reported')
      const read = await stats(
        `sum(idx_tup_read) filter (where indexrelname = 'groups_tickets')`,
        'pg_stat_user_indexes',
      )
      assert.ok(read < 1000, `${read} tickets were read to place ${calls} times ${most}`)
    })
  })

  test('idle groups are forgotten by way of their index, however many others there are', {
    timeout: 120_000,
  }, async () => {
    const clock = { now: EPOCH }
    await withStore(
      async (store, schema) => {
        const [blocked, once] = [3000, 2500]
        await store.operations.configure({ queue: 'q', groupRunning: 1, keepDone: 0 })
        const idle = await open(urlOf('postgres'), { schema, clock: () => clock.now })
        await pushAll(store, 2 * blocked, (n) => `blocked${n % blocked}`)
        for (let taken = 0; taken < blocked; ) taken += (await claimOf(store, 1000)).jobs.length
        await pushAll(store, once, (n) => `once${n}`)
        for (let done = 0; done < once; ) {
          const { jobs } = await claimOf(store, 1000)
          await store.operations.complete({
            queue: 'q',
            items: jobs.map(({ id, fence }) => ({ id, fence, result: null })),
          })
          done += jobs.length
        }
        assert.equal((await claimOf(store, 1)).jobs.length, 0, 'a claim after the last ending has looked at its group')
        clock.now += 9999
        assert.equal((await idle.operations.sweep({ limit: 1000 })).more, false)
        clock.now += 1
        let sweeps = 1
        while ((await idle.operations.sweep({ limit: 1000 })).more) sweeps++
        assert.equal(sweeps, 3)
        // Closing it makes the server's processes report what they have counted.
        await idle.close()
        const stats = async (columns: string, view: string, rest = '') => {
          const [row] = await server(
            `select ${columns} from ${view} where schemaname = $1 and relname = 'groups' ${rest}`,
            [schema],
          )
          return row ?? {}
        }
        await until(async () => {
          return Number((await stats('n_tup_del as gone', 'pg_stat_user_tables')).gone) === once
        }, 'the deletions are reported')
        assert.equal(Number((await stats('seq_tup_read as read', 'pg_stat_user_tables')).read), 0)
        const { read } = await stats('idx_tup_read as read', 'pg_stat_user_indexes', `and indexrelname = 'groups_idle'`)
        assert.ok(Number(read) <= 4 * once, `${read} entries were read to forget ${once} groups`)
        assert.deepEqual(await server(`select count(*)::integer as count from ${schema}.groups`), [{ count: blocked }])
      },
      { clock: () => clock.now },
    )
  })

  test('a claim beside the release that pauses its queue does not get the job that is given back', async () => {
    await withStore(async (store, schema) => {
      await withMore(schema, 3, async (others) => {
        for (let round = 0; round < 300; round++) {
          const queue = `q${round}`
          await store.operations.push({ jobs: [job({ queue, fresh: true })] })
          const { jobs } = await store.operations.claim({ queue, worker: 'w', limit: 1, lease: 60_000 })
          const holds = jobs.map(({ id, fence }) => ({ id, fence, pause: 3_600_000 }))
          const released = store.operations.release({ queue, items: holds })
          const claims = others.flatMap((other) =>
            Array.from({ length: 3 }, () => other.operations.claim({ queue, worker: 'v', limit: 1, lease: 60_000 })),
          )
          assert.deepEqual(await released, ['ok'])
          const early = (await Promise.all(claims)).flatMap((claimed) => claimed.jobs)
          assert.deepEqual(early, [], `round ${round}`)
        }
      })
    })
  })
})
