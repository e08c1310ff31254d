/** Sweeps of the PostgreSQL store: by turns, bounded by what is due, and never waiting for readers. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/postgres/index.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, dropSchema, job, newSchema, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

const mark = async (schema: string, of: 'due' | 'leases') =>
  Number((await server(`select last_value from ${schema}.swept_${of}`))[0]?.last_value)

const pushAll = async (store: Store, count: number, over: Parameters<typeof job>[0]) => {
  for (let sent = 0; sent < count; sent += 500)
    await store.operations.push({
      jobs: Array.from({ length: Math.min(500, count - sent) }, () => job({ fresh: true, ...over })),
    })
}

describe('what is due', { skip }, () => {
  test('of one queue does not keep another’s waiting', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store) => {
        await pushAll(store, 3000, { queue: 'many', delay: 10 })
        const [one] = [job({ queue: 'few', delay: 20 })]
        await store.operations.push({ jobs: [one] })
        clock.now += 1000
        assert.equal((await store.operations.sweep({ limit: 100 })).promoted, 100)
        assert.equal((await store.operations.find({ ids: [one.id] }))[0]?.state, 'waiting')
        // The others are as quick as if they were alone.
        let rounds = 1
        while ((await store.operations.sweep({ limit: 100 })).more) rounds++
        assert.ok(rounds <= 31, `${rounds} sweeps for 3001 jobs`)
      },
      { clock: () => clock.now },
    )
  })

  test('is found at once where the clock went back past what a sweep has dealt with, else within ten seconds', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store, schema) => {
        await store.operations.push({ jobs: [job(), job({ delay: 1000 })] })
        await store.operations.claim({ queue: 'emails', worker: 'w', limit: 1, lease: 1000 })
        clock.now += 60_000
        await server(
          `select setval('${schema}.swept_leases', $1), setval('${schema}.swept_due', $1), setval('${schema}.swept_whole', $1 + 10000)`,
          [clock.now],
        )
        const hinted = await store.operations.sweep({ limit: 10 })
        assert.deepEqual([hinted.lost.length, hinted.promoted], [0, 0])
        clock.now += 10_000
        const whole = await store.operations.sweep({ limit: 10 })
        assert.deepEqual([whole.lost.length, whole.promoted], [1, 1])
        clock.now -= 5000
        await store.operations.push({ jobs: [job({ delay: 1000 })] })
        clock.now += 2000
        assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 1)
      },
      { clock: () => clock.now },
    )
  })
})

describe('the marks from which sweeps look', { skip }, () => {
  test('move up to the first that is due, while more is due than one sweep takes, and then to now', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store, schema) => {
        for (let n = 1; n <= 30; n++) await store.operations.push({ jobs: [job({ delay: n })] })
        const first = clock.now
        clock.now += 10_000
        assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 10)
        assert.equal(await mark(schema, 'due'), first + 1)
        assert.equal((await store.operations.sweep({ limit: 100 })).promoted, 20)
        assert.equal(await mark(schema, 'due'), first + 11)
        assert.equal((await store.operations.sweep({ limit: 100 })).promoted, 0)
        assert.equal(await mark(schema, 'due'), clock.now)
        assert.equal(await mark(schema, 'leases'), clock.now)
        const [held] = await server(
          `with later as materialized (select ${schema}.hold_time('due', $1::bigint + 20) as at)
          select held.* from later cross join lateral ${schema}.held_times($1 + 0 * later.at) as held`,
          [clock.now],
        )
        assert.deepEqual([Number(held?.due), Number(held?.leases)], [clock.now, clock.now])
      },
      { clock: () => clock.now },
    )
  })

  test('do not pass what is about to be committed: it is found as soon as that is', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store, schema) => {
        await store.operations.push({
          jobs: [job({ queue: 'failing' }), job({ queue: 'claimed' }), job({ queue: 'extended' })],
        })
        const one = { worker: 'w', limit: 1 }
        const [failing] = (await store.operations.claim({ ...one, queue: 'failing', lease: 3_600_000 })).jobs
        const [extended] = (await store.operations.claim({ ...one, queue: 'extended', lease: 62_000 })).jobs
        assert.ok(failing && extended)
        const late = [
          // The lease that it had ends meanwhile, and is not lost, since the row is locked.
          `extend('extended', 4000, array['${extended.id}']::uuid[], array[${extended.fence}], now => $1)`,
          `push_list('pushed', array[gen_random_uuid()], array['1'], delay => 10, now => $1)`,
          `push_jobs('[{"id":"${randomUUID()}","queue":"pushed","delay":10,"priority":4,"data":"j1","fresh":true}]', now => $1)`,
          `push_jobs('[{"id":"${randomUUID()}","queue":"pushed","delay":10,"priority":4,"data":"j1"}]', false, now => $1)`,
          `fail('failing', '[{"id":"${failing.id}","fence":${failing.fence},"error":"{}","delay":"10"}]', now => $1)`,
          `claim('claimed', 'w', 1, 1000, now => $1)`,
        ]
        const client = new pg.Client(urlOf('postgres'))
        await client.connect()
        try {
          for (const call of late) {
            clock.now += 60_000
            await store.operations.sweep({ limit: 10 })
            await client.query('begin')
            await client.query(`select ${schema}.${call}`, [clock.now])
            clock.now += 5000
            const before = await store.operations.sweep({ limit: 10 })
            assert.deepEqual([before.promoted, before.lost.length], [0, 0], call)
            await client.query('commit')
            const after = await store.operations.sweep({ limit: 10 })
            assert.equal(after.promoted + after.lost.length, 1, call)
          }
        } finally {
          await client.end()
        }
      },
      { clock: () => clock.now },
    )
  })

  test('do not pass the end of a job that was held up: the follower that it lets go is found at once', () =>
    withStore(async (store, schema) => {
      const [one, follower] = [job({ key: 'k' }), job({ key: 'k', once: { follow: true } })]
      await store.operations.push({ jobs: [one] })
      const { jobs } = await store.operations.claim({ queue: one.queue, worker: 'w', limit: 1, lease: 60_000 })
      await store.operations.push({ jobs: [follower] })
      // Begins at the beginning; the next ones do not.
      await store.operations.sweep({ limit: 10 })
      const client = new pg.Client(urlOf('postgres'))
      await client.connect()
      try {
        await client.query('begin')
        await client.query(`select from ${schema}.waiting where id = $1 for update`, [follower.id])
        const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
        const done = store.operations.complete({ queue: one.queue, items })
        const pid = (await client.query('select pg_backend_pid() as pid')).rows[0].pid
        const waits = 'select count(*) as count from pg_stat_activity where $1 = any (pg_blocking_pids(pid))'
        await until(async () => Number((await server(waits, [pid]))[0]?.count) > 0)
        await store.operations.sweep({ limit: 10 })
        await client.query('rollback')
        assert.deepEqual(await done, ['ok'])
        assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 1)
      } finally {
        await client.end()
      }
    }))

  test('do not pass what a job that is cancelled at once lets go, in a transaction of the caller', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store, schema) => {
        const [dead, whole] = [job(), job()]
        await store.operations.push({ jobs: [dead, whole] })
        await store.operations.cancel({ ids: [dead.id] })
        const part = job({ after: [whole.id] })
        const later = job({ after: [part.id], onDead: 'run', runAt: clock.now + 61_000 })
        await store.operations.push({ jobs: [part, later] })
        clock.now += 60_000
        await store.operations.sweep({ limit: 10 })
        const client = new pg.Client(urlOf('postgres'))
        await client.connect()
        try {
          await client.query('begin')
          const failed = {
            id: randomUUID(),
            queue: 'emails',
            priority: 4,
            data: 'j1',
            after: [dead.id],
            partOf: whole.id,
          }
          await client.query(`select ${schema}.push_graph($1, false, $2)`, [JSON.stringify([failed]), clock.now])
          clock.now += 5000
          await store.operations.sweep({ limit: 10 })
          await client.query('commit')
        } finally {
          await client.end()
        }
        assert.equal((await store.operations.find({ ids: [later.id] }))[0]?.state, 'scheduled')
        assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 1)
      },
      { clock: () => clock.now },
    )
  })

  test('do not pass a follower that became due in the very millisecond of another job', async () => {
    const clock = { now: 1_700_000_000_000 }
    await withStore(
      async (store) => {
        const [one, follower] = [job({ key: 'k', attempts: 1 }), job({ key: 'k', once: { follow: true } })]
        await store.operations.push({ jobs: [one] })
        await store.operations.claim({ queue: one.queue, worker: 'w', limit: 1, lease: 1000 })
        await store.operations.push({ jobs: [follower, job({ delay: 1000 })] })
        await store.operations.sweep({ limit: 10 })
        clock.now += 1000
        // The last lease ends, so the follower is due, at an earlier place than the job that this sweep has begun with.
        const { lost, promoted } = await store.operations.sweep({ limit: 10 })
        assert.deepEqual([lost.length, promoted], [1, 1])
        clock.now += 1000
        assert.equal((await store.operations.sweep({ limit: 10 })).promoted, 1)
      },
      { clock: () => clock.now },
    )
  })
})

describe('a sweep', { skip }, () => {
  test('looks anew at what is kept where that was changed while it was under way', async () => {
    const clock = { now: Date.UTC(2026, 0, 1) }
    await withStore(
      async (store, schema) => {
        const [first, second] = [job(), job()]
        for (const each of [first, second]) {
          await store.operations.push({ jobs: [each] })
          const items = (await claimAll(store)).map((claimed) => ({ ...claimed, result: null }))
          await store.operations.complete({ queue: 'emails', items })
          clock.now += 50 * 60_000
        }
        const holder = new pg.Client(urlOf('postgres'))
        await holder.connect()
        const waits = async () =>
          (
            await server(
              `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}.sweep%'`,
            )
          ).length > 0
        try {
          await holder.query('begin')
          await holder.query(`select from ${schema}.done where id = $1 for update`, [first.id])
          const sweeping = store.operations.sweep({ limit: 10 })
          await until(waits, 'the sweep to come to the row')
          let changed = false
          const changing = store.operations.configure({ queue: 'emails', keepDone: 60_000 }).then(() => {
            changed = true
          })
          const text = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}.configure%'`
          await until(async () => changed || (await server(text)).length > 0, 'the change, or that it waits')
          await holder.query('rollback')
          await Promise.all([sweeping, changing])
        } finally {
          await holder.end()
        }
        await store.operations.sweep({ limit: 10 })
        assert.deepEqual(await store.operations.find({ ids: [first.id, second.id] }), [null, null])
      },
      { clock: () => clock.now },
    )
  })

  test('does not wait for whoever reads the jobs', async () => {
    const clock = { now: Date.UTC(2026, 0, 1) }
    await withStore(
      async (store, schema) => {
        await store.operations.push({ jobs: [job()] })
        const [one] = await claimAll(store)
        assert.ok(one)
        await store.operations.sweep({ limit: 1 })
        await store.operations.complete({ queue: 'emails', items: [{ ...one, result: null }] })
        // A segment that is due: closed long ago.
        await server(`update ${schema}.segments set current = segment = 1, used = segment in (0, 1), closed_at = 0, greatest = gen_random_uuid()
          where segment in (0, 1)`)
        const reader = new pg.Client(urlOf('postgres'))
        await reader.connect()
        try {
          await reader.query('begin')
          await reader.query(`select count(*) from ${schema}.jobs`)
          let waited = 0
          let sweeping = true
          const watch = (async () => {
            while (sweeping)
              waited += (
                await server(`select 1 from pg_locks where not granted and relation = '${schema}.done_0'::regclass`)
              ).length
          })()
          for (let n = 0; n < 30; n++) await store.operations.sweep({ limit: 10 })
          sweeping = false
          await watch
          assert.equal(waited, 0)
          assert.equal((await store.operations.find({ ids: [one.id] }))[0]?.state, 'done')
          await reader.query('commit')
          clock.now += 2 * 3_600_000
          await until(async () => {
            await store.operations.sweep({ limit: 10 })
            return (await store.operations.find({ ids: [one.id] }))[0] === null
          }, 'the segment to be emptied')
        } finally {
          await reader.end()
        }
      },
      { clock: () => clock.now },
    )
  })
})

describe('lists', { skip }, () => {
  test('read what they show, whatever else is stored', async () => {
    const url = urlOf('postgres')
    const schema = newSchema()
    const read = async () => {
      const [row] = await server(
        `select coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) as rows
         from pg_stat_user_tables where schemaname = $1`,
        [schema],
      )
      return Number(row?.rows)
    }
    const settled = async () => {
      let last = -1
      await until(async () => {
        const [now, before] = [await read(), last]
        last = now
        return (
          now === before &&
          (await server(`select 1 from pg_stat_activity where application_name = $1`, [schema])).length === 0
        )
      }, 'the figures to stand still')
      return last
    }
    const named = new URL(url)
    named.searchParams.set('application_name', schema)
    const first = await open(named, { schema })
    try {
      await pushAll(first, 10_000, {})
      await pushAll(first, 20, { queue: 'few' })
      const few = await first.operations.claim({ queue: 'few', worker: 'w', limit: 20, lease: 60_000 })
      const error = { code: 'JobFailed', name: 'Error', message: '' }
      await first.operations.fail({
        queue: 'few',
        items: few.jobs.map(({ id, fence }) => ({ id, fence, error, delay: null })),
      })
      await first.close()
      await server(`analyze ${schema}.waiting`)
      const before = await settled()
      const second = await open(named, { schema })
      for (const [queue, state, count] of [
        ['few', 'dead', 20],
        ['emails', 'waiting', 50],
        ['emails', 'dead', 0],
        ['few', 'done', 0],
      ] as const) {
        const { jobs } = await second.operations.list({ queue, state, limit: 50 })
        assert.equal(jobs.length, count)
        if (jobs.length > 1) await second.operations.list({ queue, state, limit: 50, after: jobs[0]?.cursor ?? '' })
      }
      await second.close()
      const rows = (await settled()) - before
      assert.ok(rows < 2000, `${rows} rows were read for 139`)
    } finally {
      await first.close()
      await dropSchema(schema)
    }
  })
})

const COUNT = 12_000

describe('jobs that came back', { skip }, () => {
  test('while an old transaction is open, are claimed in order, and claims step over few of those claimed before', async () => {
    const url = urlOf('postgres')
    const schema = newSchema()
    const old = new pg.Client(url)
    await old.connect()
    const store = await open(url, { schema })
    const claim = async (fence: number) => {
      const claimed = await claimAll(store, 500)
      assert.equal(claimed.length, 500)
      for (const each of claimed) assert.equal(each.fence, fence)
      return claimed
    }
    try {
      await old.query('begin isolation level repeatable read')
      await old.query('select 1')
      await pushAll(store, COUNT, {})
      const all: { id: string; fence: number }[] = []
      while (all.length < COUNT) all.push(...(await claim(1)))
      for (let at = 0; at < COUNT; at += 500)
        await store.operations.release({ queue: 'emails', items: all.slice(at, at + 500) })
      const again: { id: string; fence: number }[] = []
      while (again.length < COUNT) again.push(...(await claim(2)))
      assert.deepEqual(
        again.map(({ id }) => id),
        all.map(({ id }) => id),
      )
      const [marks] = await server(`select
        (select count(*)::int from ${schema}.lines) as lines,
        (select line from ${schema}.queues) as open,
        (select places[6]::int from ${schema}.lines where line = 0) as pushed`)
      assert.ok(Number(marks?.open) > 1, `lines were closed: ${marks?.open}`)
      assert.ok(Number(marks?.lines) < 4, `and forgotten once they were empty: ${marks?.lines}`)
      assert.ok(Number(marks?.pushed) > COUNT - 4096, `the marks went on: ${marks?.pushed}`)
      // The oldest of all, behind every mark.
      const [first] = again
      assert.ok(first)
      await store.operations.release({ queue: 'emails', items: [first] })
      assert.deepEqual(
        (await claimAll(store)).map(({ id }) => id),
        [first.id],
      )
    } finally {
      await store.close()
      await old.end()
      await dropSchema(schema)
    }
  })

  test('have their line closed also where none of their places is round', async () => {
    await withStore(async (store, schema) => {
      await pushAll(store, COUNT, {})
      const first: { id: string; fence: number }[] = []
      while (first.length < COUNT) first.push(...(await claimAll(store, 500)))
      // Places are counted from 1.
      const odd = first.filter((_, index) => index % 2 === 0)
      for (let at = 0; at < odd.length; at += 500) {
        const some = odd.slice(at, at + 500)
        await store.operations.release({ queue: 'emails', items: some })
        assert.deepEqual(
          (await claimAll(store, 500)).map(({ id }) => id),
          some.map(({ id }) => id),
        )
      }
      const lines = await server(`select line from ${schema}.lines where line > 0 order by line`)
      const open = (await server(`select line from ${schema}.queues`))[0]?.line
      assert.ok(Number(open) > 3, `of ${odd.length} jobs one in 1,024 closes the line: ${open} were opened`)
      assert.ok(lines.length < 3, `those that are empty are forgotten: ${lines.length}`)
    })
  })

  test('are all found while claims and comebacks run beside each other', async () => {
    await withStore(async (store) => {
      const done = new Set<string>()
      let twice = 0
      await pushAll(store, COUNT, {})
      const work = async (nth: number) => {
        for (let round = nth; done.size < COUNT; round++) {
          const claimed = await claimAll(store, 97)
          if (claimed.length === 0) continue
          if (round % 2 === 0) await store.operations.release({ queue: 'emails', items: claimed })
          else {
            await store.operations.complete({
              queue: 'emails',
              items: claimed.map(({ id, fence }) => ({ id, fence, result: null })),
            })
            for (const { id } of claimed) {
              if (done.has(id)) twice++
              done.add(id)
            }
          }
        }
      }
      await Promise.all([0, 1, 2, 3].map(work))
      assert.equal(twice, 0)
      assert.deepEqual(await claimAll(store), [])
    })
  })
})
