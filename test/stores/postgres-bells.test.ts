/** The PostgreSQL store's bells: none is missed for want of a glance at the right moment, and looks become rare when nothing happens. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import type { Bell, Store } from '../../src/store.ts'
import { Calls } from '../../src/stores/postgres/connection/calls.ts'
import type { Database } from '../../src/stores/postgres/connection/database.ts'
import { Notifier } from '../../src/stores/postgres/notifier.ts'
import { missingReason } from '../servers/shared.ts'
import { until } from '../support/until.ts'
import { claimAll, job, openPostgres, server, urlOf, withStore } from './postgres-fixture.ts'

const skip = missingReason('postgres')

describe('a push that is under way', { skip }, () => {
  test('when a worker falls asleep is looked for again until it has ended', async () => {
    await withStore(async (store, schema) => {
      const pusher = new pg.Client({ connectionString: urlOf('postgres') })
      await pusher.connect()
      try {
        await store.operations.push({ jobs: [job()] })
        await claimAll(store)
        let up = false
        let claims = 0
        let found = 0
        let claiming: Promise<void> = Promise.resolve()
        store.listen(({ kind }) => {
          up = true
          if (kind !== 'work') return
          claiming = claiming.then(async () => {
            found += (await claimAll(store)).length
            claims++
          })
        })
        await until(() => up, 'LISTEN')
        await claiming
        await server(`delete from ${schema}.sleepers`)
        await pusher.query('begin')
        await pusher.query(`select ${schema}.push('emails', '1')`)
        // It saw nobody asleep, so it will ring for nobody.
        claims = 0
        await claimAll(store)
        await until(() => claims >= 3, 'a third look')
        await pusher.query('commit')
        await until(() => found === 1, 'the job')
      } finally {
        await pusher.end()
      }
    })
  })

  test('is told of although it ends while the claim looks', async () => {
    await withStore(async (_, schema) => {
      const clients = Array.from({ length: 3 }, () => new pg.Client(urlOf('postgres')))
      const [pusher, claimer, keeper] = clients as [pg.Client, pg.Client, pg.Client]
      await Promise.all(clients.map((client) => client.connect()))
      const claim = async () =>
        (await claimer.query(`select jobs, asleep from ${schema}.claim('emails', 'w', 1, 60000, 'us')`)).rows[0]
      const waits = async () => {
        const text = `select from pg_stat_activity where query like '%${schema}.claim%' and wait_event_type = 'Lock'`
        return (await server(text)).length > 0
      }
      try {
        await pusher.query('begin')
        await pusher.query(`select ${schema}.push('emails', '1')`)
        assert.deepEqual(await claim(), { jobs: null, asleep: true })
        // A claim that notes who sleeps after it has looked waits here.
        await keeper.query('begin')
        await keeper.query(`delete from ${schema}.sleepers`)
        let answered = false
        const second = claim().finally(() => {
          answered = true
        })
        await until(async () => answered || (await waits()), 'the second claim')
        await pusher.query('commit')
        await keeper.query('rollback')
        assert.deepEqual(await second, { jobs: null, asleep: true })
      } finally {
        await Promise.all(clients.map((client) => client.end()))
      }
    })
  })
})

describe('what happens in psql', { skip }, () => {
  /** Rings once somebody is noted as waiting for it, without any call of a library. */
  const heard = async (
    kind: Bell['kind'],
    wait: (store: Store) => Promise<unknown>,
    doing: (schema: string) => string,
  ) =>
    withStore(async (store, schema) => {
      await store.operations.configure({ queue: 'emails', capacity: 2 })
      let rung = 0
      store.listen((bell) => {
        if (bell.kind === kind && bell.queue === 'emails') rung++
      })
      await until(async () => {
        await wait(store)
        return (await server(`select 1 from ${schema}.sleepers where kind = $1`, [kind])).length > 0
      }, 'somebody to be noted')
      // The look that follows being noted.
      await until(() => rung > 0, 'the first bell')
      rung = 0
      await server(doing(schema))
      await until(() => rung > 0, 'the bell')
    })
  const live = job()

  test('finished: a job that somebody looked at is completed', async () => {
    const look = async (store: Store) => {
      await store.operations.push({ jobs: [live] })
      await store.operations.outcomes({ ids: [live.id] })
    }
    await heard(
      'finished',
      look,
      (schema) => `do $$ declare v record; begin
      v := ${schema}.claim('emails', 'psql', 1);
      perform ${schema}.complete('emails', array['${live.id}']::uuid[], array[(v.jobs::json -> 0 ->> 1)::integer]);
    end $$`,
    )
  })

  test('room: a job leaves a queue that somebody found full', async () => {
    const fill = (store: Store) => store.operations.push({ jobs: [job(), job(), job()] })
    await heard('room', fill, (schema) => `select ${schema}.claim('emails', 'psql', 1)`)
    await heard('room', fill, (schema) => `select ${schema}.cancel(array(select id from ${schema}.jobs))`)
    await heard('room', fill, (schema) => `select ${schema}.configure('emails', '{"capacity": null}')`)
  })

  test('cancelled: a running job', async () => {
    await withStore(async (store, schema) => {
      const cancelled: string[] = []
      let up = false
      store.listen(({ kind, queue }) => {
        up = true
        if (kind === 'cancelled') cancelled.push(queue)
      })
      await until(async () => {
        await claimAll(store)
        return up
      }, 'LISTEN')
      await store.operations.push({ jobs: [job()] })
      await claimAll(store)
      cancelled.length = 0
      await server(`select ${schema}.cancel(array(select id from ${schema}.jobs))`)
      await until(() => cancelled.includes('emails'), 'the bell')
    })
  })
})

describe('what those see who cannot LISTEN', { skip }, () => {
  const rung = async (change: (store: Store, id: string) => Promise<unknown>) =>
    withStore(async (store, schema) => {
      const first = job({ group: 'a', cost: 2 })
      await store.operations.configure({ queue: 'emails', groupRate: { count: 1, per: 1000, burst: 2 } })
      await store.operations.push({ jobs: [first, job({ group: 'a' })] })
      const seen = async () =>
        (await server(`select watch ->> 'work' as work from ${schema}.watch() as watch`))[0]?.work
      const before = await seen()
      await change(store, first.id)
      assert.notEqual(await seen(), before)
    })

  test('the limits of a group', () =>
    rung((store) =>
      store.operations.limitGroup({ queue: 'emails', group: 'a', limits: { running: 9, rate: null, weight: 1 } }),
    ))

  test('a job left its line before it was started, so that the one behind it may start', async () => {
    await rung((store, id) => store.operations.cancel({ ids: [id] }))
    await rung((store, id) => store.operations.remove({ ids: [id] }))
  })
})

test('a claim that is cancelled keeps no lock of the session', { skip }, () =>
  withStore(async (_, schema) => {
    const client = new pg.Client(urlOf('postgres'))
    await client.connect()
    try {
      await client.query(`set statement_timeout = 10`)
      const looks = `do $$ begin loop perform ${schema}.is_stirring('emails'); end loop; end $$`
      for (let left = 20; left > 0; left--) {
        await assert.rejects(client.query(looks), { code: '57014' })
        const { rows } = await client.query(
          `select count(*)::integer as kept from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
        )
        assert.equal(rows[0].kept, 0)
      }
    } finally {
      await client.end()
    }
  }),
)

test('a text that ends as our quotes begin is kept', { skip: missingReason('pgbouncer') }, async () => {
  const { store, dispose } = await openPostgres(urlOf('pgbouncer'))
  try {
    const odd = job({ group: 'x$mp', trace: '$mp$mp' })
    assert.deepEqual(await store.operations.push({ jobs: [odd] }), [{ status: 'pushed', id: odd.id }])
    const [claimed] = await claimAll(store)
    assert.deepEqual([claimed?.group, claimed?.trace], ['x$mp', '$mp$mp'])
  } finally {
    await dispose()
  }
})

describe('a list of jobs', { skip }, () => {
  test('is stored in one call, whatever of it is known already', async () => {
    await withStore(async (store, schema) => {
      const known = job()
      await store.operations.push({ jobs: [known] })
      // What would have to be asked a second time could fail after a part was stored.
      await server(`drop function ${schema}.push_jobs`)
      const fresh = job()
      const twice = job()
      assert.deepEqual(await store.operations.push({ jobs: [fresh, known, twice, twice] }), [
        { status: 'pushed', id: fresh.id },
        { status: 'existing', id: known.id },
        { status: 'pushed', id: twice.id },
        { status: 'existing', id: twice.id },
      ])
      assert.equal((await store.operations.stats({}))[0]?.counts.waiting, 3)
    })
  })

  test('that all are alike meets a full queue job by job', async () => {
    await withStore(async (store) => {
      await store.operations.configure({ queue: 'emails', capacity: 2 })
      const jobs = [job(), job(), job()]
      const outcomes = await store.operations.push({ jobs })
      assert.deepEqual(
        outcomes,
        jobs.map(({ id }, at) => ({ status: at < 2 ? 'pushed' : 'full', id })),
      )
    })
  })
})

test('looks become rarer when nothing happens, and frequent again when something does', async () => {
  const looks: number[] = []
  let ready = 0
  const never = () => Promise.reject(new Error('not of this test'))
  const database: Database = {
    async call() {
      looks.push(performance.now())
      return [[JSON.stringify({ queue: 'q', work: ready, room: null, finished: 0, cancelled: 0 })]]
    },
    run: never,
    begin: never,
    listen: never,
    pooled: never,
    end: never,
  }
  const POLL = 20
  const notifier = new Notifier(new Calls(database, 'none', 15_000, undefined), POLL)
  notifier.listen(() => {})
  const gap = () => (looks.at(-1) ?? 0) - (looks.at(-2) ?? 0)
  const rare = () => gap() > POLL * 4
  const frequent = () => gap() > 0 && gap() < POLL * 2
  const alive = setInterval(() => {}, 1000)
  try {
    await until(rare, 'rare looks')
    notifier.stir()
    await until(frequent, 'frequent looks, since something is done here')
    await until(rare, 'rare looks again')
    ready++
    await until(frequent, 'frequent looks, since something was done elsewhere')
  } finally {
    notifier.close()
    clearInterval(alive)
  }
})
