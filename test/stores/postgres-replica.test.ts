/** Handlers that read a replica, against a primary and a streaming replica that shows every commit two seconds late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { type Context, isMillpondError, Millpond, type MillpondError, type WorkOptions } from '../../src/index.ts'
import { started } from '../servers/fixtures.ts'
import { type PostgresServer, startPostgres } from '../servers/postgres.ts'
import { caughtUp, setApplyDelay, startReplica } from '../servers/postgres-replica.ts'
import { startProxy } from '../servers/proxy.ts'
import { until } from '../support/until.ts'
import { newSchema } from './postgres-fixture.ts'

const DELAY = 2000
/** Longer than any test takes. */
const NEVER = 600_000
const ROW = 'select from items where id = $1::integer'

interface Pair {
  primary: PostgresServer
  replica: PostgresServer
  /** Connections of the test's own, to each. */
  onPrimary: pg.Pool
  onReplica: pg.Pool
}

interface Place extends Pair {
  pond: Millpond
  schema: string
  errors: MillpondError[]
}

/** What a handler saw. */
interface Seen {
  id: number
  found: boolean
  primary: boolean
  attempt: number
}

let items = 0

/** A row, committed. */
async function insert({ onPrimary }: Pair): Promise<number> {
  const id = ++items
  await onPrimary.query('insert into items values ($1)', [id])
  return id
}

/** Collects what handlers see when they look their row up. */
function look(seen: Seen[]) {
  return async (job: { data: unknown; attempt: number }, ctx: Context) => {
    const { primary } = ctx.replica
    const rows = await ctx.replica(ROW, [job.data])
    seen.push({ id: Number(job.data), found: rows.length === 1, primary, attempt: job.attempt })
  }
}

async function atPlace(pair: Pair, body: (place: Place) => Promise<void>): Promise<void> {
  const schema = newSchema()
  const pond = await Millpond.open(pair.primary.url, { schema })
  const errors: MillpondError[] = []
  pond.on('error', (error) => errors.push(error))
  try {
    await body({ ...pair, pond, schema, errors })
  } finally {
    await pond.close({ timeout: 1000 })
    await setApplyDelay(pair.replica, 0)
    await pair.onPrimary.query(`drop schema ${schema} cascade`)
    await caughtUp(pair.primary, pair.replica)
  }
}

/** Pushes one row's job after the other until a handler has read where it should. */
async function untilRead(place: Place, options: WorkOptions, primary: boolean): Promise<void> {
  const seen: Seen[] = []
  const queue = place.pond.queue<number>(`until-${++items}`)
  const worker = queue.work(look(seen), options)
  await until(
    async () => {
      await queue.push(await insert(place))
      await until(() => seen.length > 0, 'it was looked up')
      const [{ found, primary: there }] = seen.splice(0) as [Seen]
      assert.ok(found)
      return there === primary
    },
    `reads go to the ${primary ? 'primary' : 'replica'}`,
  )
  await worker.close()
}

const CHECKS: Record<string, (place: Place) => Promise<void>> = {
  'no handler misses the row that its pusher committed, however it was pushed': async (place) => {
    const { pond, replica, onPrimary, onReplica, errors } = place
    await setApplyDelay(replica, DELAY)
    const lost: unknown[] = []
    pond.on('lost', (event) => lost.push(event))
    const found: boolean[] = []
    const naive = pond.queue<number>('naive')
    naive.work(async (job) => void found.push((await onReplica.query(ROW, [job.data])).rowCount === 1))
    const seen: Seen[] = []
    // The lease is shorter than the delay, and so is the timeout, which begins with the handler.
    const queue = pond.queue<number>('q', { lease: '500ms' })
    queue.work(look(seen), { replica: replica.url, concurrency: 60, replicaTimeout: '60s' })
    const push = async (transaction: boolean) => {
      if (!transaction) await queue.push(await insert(place), { timeout: DELAY - 100 })
      else {
        const client = await onPrimary.connect()
        await client.query('begin')
        await queue.push(++items, { tx: client, timeout: DELAY - 100 })
        await client.query('insert into items values ($1)', [items])
        await client.query('commit')
        client.release()
      }
    }
    for (let n = 0; n < 24; n++) {
      await push(n % 2 === 0)
      if (n % 2 === 0) await naive.push(await insert(place))
    }
    await until(() => seen.length === 24 && found.length === 12, 'all ran')
    assert.ok(found.includes(false), 'a plain read would have missed some')
    assert.deepEqual(
      seen.filter(({ found, primary, attempt }) => !found || primary || attempt > 1),
      [],
    )
    // Later ones, behind the first, too.
    for (let n = 0; n < 12; n++) await push(n % 2 === 0)
    await until(() => seen.length === 36, 'all ran')
    assert.deepEqual(
      seen.filter(({ found, primary, attempt }) => !found || primary || attempt > 1),
      [],
    )
    assert.deepEqual([lost, errors], [[], []])
  },

  'a push that finds a live job with its key counts, too': async (place) => {
    const { pond, primary, replica } = place
    const queue = pond.queue<number>('q')
    await queue.pause()
    const id = ++items
    await queue.push(id, { key: 'k' })
    await caughtUp(primary, replica)
    await setApplyDelay(replica, DELAY)
    await place.onPrimary.query('insert into items values ($1)', [id])
    assert.ok((await queue.push(id, { key: 'k' })).existing)
    const seen: Seen[] = []
    queue.work(look(seen), { replica: replica.url, replicaTimeout: '60s' })
    await queue.resume()
    await until(() => seen.length === 1, 'it ran')
    assert.deepEqual(seen, [{ id, found: true, primary: false, attempt: 1 }])
  },

  'past the limit a handler reads the primary, and the next ones do not even wait': async (place) => {
    const { pond, replica, errors } = place
    await setApplyDelay(replica, NEVER)
    const seen: Seen[] = []
    const queue = pond.queue<number>('q')
    const worker = queue.work(look(seen), { replica: replica.url, replicaTimeout: '1s', concurrency: 1 })
    for (let n = 0; n < 5; n++) await queue.push(await insert(place))
    await until(() => seen.length === 5, 'all ran')
    assert.ok(seen.every(({ found, primary }) => found && primary))
    assert.ok(errors.length > 0 && errors.length < 5, `${errors.length}`)
    assert.ok(isMillpondError(errors[0], 'StoreUnavailable'))
    assert.match(errors[0].message, /primary for 1000 ms: .*did not show job .* within 1000 ms/)
    await worker.close()
    await setApplyDelay(replica, 0)
    await untilRead(place, { replica: replica.url }, false)
  },

  'a replica that dies under a handler: it reads the primary, and so do the next ones until the replica is back':
    async (place) => {
      const { pond, primary, replica, errors } = place
      const queue = pond.queue<number>('q')
      const before = Promise.withResolvers<boolean>()
      const killed = Promise.withResolvers<void>()
      queue.work(
        async (job, ctx) => {
          await ctx.replica(ROW, [job.data])
          before.resolve(ctx.replica.primary)
          const read = ctx.replica('select pg_sleep(600)')
          await killed.promise
          // The one under way was begun anew on the primary, which ends it; the next one goes there at once.
          await assert.rejects(read, /canceling statement/)
          const [row] = await ctx.replica('select pg_is_in_recovery() as standby')
          return [ctx.replica.primary, row?.standby]
        },
        { replica: replica.url },
      )
      const { id } = await queue.push(await insert(place))
      assert.equal(await before.promise, false)
      await replica.kill('SIGKILL')
      killed.resolve()
      await until(async () => {
        const text = `select pg_cancel_backend(pid) from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`
        return (await primary.query(text)) === 't'
      }, 'the slow read is on the primary')
      assert.deepEqual(await pond.result(id, { timeout: '10s' }), [true, false])
      await untilRead(place, { replica: replica.url }, true)
      assert.ok(errors.some(({ code, message }) => code === 'StoreUnavailable' && /cannot be asked/.test(message)))
      await replica.restart()
      await untilRead(place, { replica: replica.url }, false)
    },

  'a connection lost while nobody reads is heard of: the replica may have been restarted': async (place) => {
    const { pond, replica } = place
    const proxy = await startProxy(replica.port)
    try {
      const queue = pond.queue<number>('q')
      const started = Promise.withResolvers<Context>()
      const ended = Promise.withResolvers<void>()
      queue.work(
        async (_, ctx) => {
          started.resolve(ctx)
          await ended.promise
        },
        { replica: replica.url.replace(`:${replica.port}/`, `:${proxy.port}/`) },
      )
      await queue.push(1)
      const ctx = await started.promise
      assert.equal(ctx.replica.primary, false)
      proxy.cut()
      await until(() => ctx.replica.primary, 'it is heard of')
      ended.resolve()
    } finally {
      await proxy.stop()
    }
  },

  'a replica that answers nothing does not hold handlers up for long, and is used when it answers again': async (
    place,
  ) => {
    const { replica, errors } = place
    const proxy = await startProxy(replica.port)
    try {
      const options: WorkOptions = {
        replica: replica.url.replace(`:${replica.port}/`, `:${proxy.port}/`),
        replicaTimeout: '1h',
      }
      await untilRead(place, options, false)
      const seen: Seen[] = []
      const queue = place.pond.queue<number>('q')
      queue.work(look(seen), options)
      await queue.push(await insert(place))
      await until(() => seen.length === 1, 'it ran')
      await proxy.blackhole()
      await queue.push(await insert(place))
      await until(() => seen.length === 2, 'it ran')
      assert.deepEqual(
        seen.map(({ found, primary }) => [found, primary]),
        [
          [true, false],
          [true, true],
        ],
      )
      assert.ok(errors.some(({ message }) => /did not answer/.test(message)))
      await proxy.allow()
      await untilRead(place, options, false)
    } finally {
      await proxy.stop()
    }
  },

  'jobs that wait when the pond closes are given back': async (place) => {
    const { primary, replica, schema } = place
    await setApplyDelay(replica, NEVER)
    await using pond = await Millpond.open(primary.url, { schema })
    const queue = pond.queue<number>('q')
    const seen: Seen[] = []
    queue.work(look(seen), { replica: replica.url, replicaTimeout: '1h' })
    const { id } = await queue.push(await insert(place))
    const second = await queue.push(await insert(place))
    await until(async () => (await queue.stats()).counts.running === 2, 'they are claimed')
    assert.equal(await pond.cancel(second.id), 'cancelled')
    await queue.push(await insert(place))
    await until(async () => (await queue.stats()).counts.running === 2, 'another is claimed')
    assert.deepEqual(await pond.close({ timeout: '1h' }), { finished: 0, givenBack: 2, dropped: 0 })
    assert.deepEqual(seen, [])
    const job = await place.pond.job(id)
    assert.deepEqual([job?.state, job?.attempt], ['waiting', 0])
  },

  'a pg Pool or a postgres.js sql of the caller’s is used, and left open': async (place) => {
    const { pond, replica, onReplica } = place
    await setApplyDelay(replica, 300)
    const sql = postgres(replica.url, { max: 2, onnotice: () => {} })
    try {
      for (const client of [onReplica, sql]) {
        const seen: Seen[] = []
        const queue = pond.queue<number>('q')
        const worker = queue.work(look(seen), { replica: client })
        await queue.push(await insert(place))
        await until(() => seen.length === 1, 'it ran')
        assert.deepEqual(
          seen.map(({ found, primary }) => [found, primary]),
          [[true, false]],
        )
        await worker.close()
      }
      assert.equal((await onReplica.query('select 1')).rowCount, 1)
      assert.equal((await sql`select 1`).length, 1)
    } finally {
      await sql.end()
    }
  },

  'nothing can be written through it, on either; a failed read fails alone': async ({ pond, primary, replica }) => {
    for (const url of [replica.url, primary.url]) {
      const queue = pond.queue<number>('q')
      const worker = queue.work(
        async (_, ctx) => {
          await assert.rejects(ctx.replica('insert into items values (0)'), /read-only transaction/)
          await assert.rejects(ctx.replica('select no_such_column'), /no_such_column/)
          return [ctx.replica.primary, await ctx.replica('select $1::integer as n', [7])]
        },
        { replica: url },
      )
      const { id } = await queue.push(1)
      assert.deepEqual(await pond.result(id, { timeout: '10s' }), [url === primary.url, [{ n: 7 }]])
      await worker.close()
    }
  },

  'a server that is no streaming replica is not read': async (place) => {
    await untilRead(place, { replica: place.primary.url }, true)
    assert.match(place.errors[0]?.message ?? '', /not a streaming replica/)
  },

  'its role needs to be a reader': async (place) => {
    const { primary, replica, onPrimary, schema, errors } = place
    const role = `reader_${schema}`
    await onPrimary.query(`create role ${role} login; grant select on items to ${role}`)
    try {
      await caughtUp(primary, replica)
      const url = replica.url.replace('//postgres@', `//${role}@`)
      await untilRead(place, { replica: url }, true)
      assert.match(errors[0]?.message ?? '', /permission denied|rights of its role/)
      await onPrimary.query(`select ${schema}.allow('${role}', 'reader')`)
      await caughtUp(primary, replica)
      await untilRead(place, { replica: url }, false)
    } finally {
      await onPrimary.query(`drop owned by ${role}; drop role ${role}`)
    }
  },

  'what is no replica is refused at once': async ({ pond }) => {
    const queue = pond.queue<number>('q')
    const invalid = (replica: unknown) =>
      assert.throws(
        () => queue.work(() => {}, { replica }),
        (error) => isMillpondError(error, 'InvalidOption'),
      )
    for (const replica of [
      'redis://localhost',
      'postgres',
      'postgres://[',
      'postgres://h/d?connections=99',
      {},
      5,
      null,
    ]) {
      invalid(replica)
    }
    assert.throws(() => queue.work(() => {}, { replicaTimeout: '1s' }), /goes with replica/)
    assert.throws(() => queue.work(() => {}, { replica: 'postgres://h/d', replicaTimeout: -1 }), /replicaTimeout/)
    const error = Promise.withResolvers<unknown>()
    queue.work((_, ctx) => {
      try {
        error.resolve(ctx.replica)
      } catch (thrown) {
        error.resolve(thrown)
      }
    })
    await queue.push(1)
    assert.ok(isMillpondError(await error.promise, 'InvalidOption'))
  },
}

test('a worker with a replica', { timeout: 120_000 }, async (t) => {
  const primary = await started(t, () => startPostgres())
  if (primary === undefined) return
  const replica = await startReplica(primary)
  t.after(() => replica.stop())
  const onPrimary = new pg.Pool({ connectionString: primary.url, max: 3 })
  const onReplica = new pg.Pool({ connectionString: replica.url, max: 3 })
  onReplica.on('error', () => {})
  try {
    await onPrimary.query('create table items (id integer primary key)')
    for (const [title, check] of Object.entries(CHECKS)) {
      await t.test(title, () => atPlace({ primary, replica, onPrimary, onReplica }, check))
    }
  } finally {
    await Promise.all([onPrimary.end(), onReplica.end()])
  }
})
