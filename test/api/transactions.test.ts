/** Effects and completions that commit together, and pushes inside transactions; refused where the store has none. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { Millpond, type TransactionQuery } from '../../src/index.ts'
import { aborted, diary, gate, inState, onEachStore, type Place, refused, until } from './suite.ts'

/** A connection of the test's own, with a table for effects. */
function database({ url }: Place): DatabaseSync & Disposable {
  const db = new DatabaseSync(url.replace(/^sqlite:|\?.*$/g, ''))
  db.exec('pragma busy_timeout = 5000; create table if not exists effects (text text) strict')
  return db
}

const effects = (db: DatabaseSync) =>
  db
    .prepare('select text from effects order by rowid')
    .all()
    .map(({ text }) => text)

onEachStore('transactions where there are none', {
  'are refused': async (place) => {
    if (place.transactions) return
    const pond = await place.open()
    const queue = pond.queue<number>('q')
    await refused(() => queue.work(() => {}, { transaction: true }), 'NotSupported', /(memory|redis) has none/)
    await refused(queue.push(1, { tx: {} }), 'NotSupported', /(memory|redis) has none/)
    await refused(queue.pushMany([1], { tx: {} }), 'NotSupported')
    assert.equal((await queue.stats()).counts.waiting, 0)
  },
})

onEachStore(
  'transactions',
  {
    'effects and completion commit together': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q')
      queue.work(
        async (job, ctx) => {
          await ctx.tx('insert into effects values (?)', [job.data])
          const rows = await ctx.tx('select count(*) as count from effects')
          assert.deepEqual(effects(db), [], 'nobody else sees it yet')
          return rows[0]?.count
        },
        { transaction: true, concurrency: 1 },
      )
      const { id } = await queue.push('one')
      assert.equal(await pond.result(id), 1)
      assert.deepEqual(effects(db), ['one'])
      assert.equal(entries.filter(({ name }) => name === 'completed').length, 1)
    },

    'a handler that throws leaves nothing behind': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
      queue.work(
        async (job, ctx) => {
          await ctx.tx('insert into effects values (?)', [`${job.data} ${job.attempt}`])
          if (job.data === 'throw') throw new Error('after the write')
          if (job.data === 'give up') return ctx.giveUp('after the write')
          if (job.data === 'too large') return 'x'.repeat(1_100_000)
          if (job.attempt === 1) return ctx.retry(0)
          return 'done'
        },
        { transaction: true, concurrency: 1 },
      )
      for (const data of ['throw', 'give up', 'too large']) {
        const { id } = await queue.push(data)
        await inState(pond, id, 'dead')
      }
      assert.deepEqual(effects(db), [])
      const { id } = await queue.push('retry')
      assert.equal(await pond.result(id), 'done')
      assert.deepEqual(effects(db), ['retry 2'])
    },

    'a handler that never touches its transaction is completed as usual': async (place) => {
      const pond = await place.open()
      const queue = pond.queue<string>('q')
      queue.work((job) => job.data, { transaction: true })
      const { id } = await queue.push('plain')
      assert.equal(await pond.result(id), 'plain')
    },

    'a cancelled job takes its effects along': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q')
      const going = gate()
      let late: unknown
      let query: TransactionQuery | undefined
      queue.work(
        async (_, ctx) => {
          query = ctx.tx
          await going.opened
          await aborted(ctx.signal)
          try {
            await ctx.tx('insert into effects values (1)')
          } catch (error) {
            late = error
          }
          return 'ignored'
        },
        { transaction: true },
      )
      const { id } = await queue.push('x')
      await inState(pond, id, 'running')
      await pond.cancel(id)
      going.open()
      await until(() => late !== undefined)
      await refused(Promise.reject(late), 'JobCancelled')
      assert.ok(query)
      await assert.rejects(query('insert into effects values (2)'))
      assert.deepEqual(effects(db), [])
      assert.equal((await pond.job(id))?.state, 'cancelled')
      assert.ok(entries.some(({ name }) => name === 'stale'))
    },

    'an attempt that lost its lease commits nothing': async (place) => {
      let ahead = 0
      const pond = await place.open({ clock: () => Date.now() + ahead })
      using db = database(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q', { lease: '30s' })
      const going = gate()
      queue.work(
        async (job, ctx) => {
          if (job.attempt === 1) await going.opened
          await ctx.tx('insert into effects values (?)', [`attempt ${job.attempt}`])
        },
        { transaction: true },
      )
      const { id } = await queue.push('x')
      await inState(pond, id, 'running')
      ahead = 31_000
      await until(() => entries.some(({ name }) => name === 'lost'))
      await inState(pond, id, 'done')
      going.open()
      await until(() => entries.some(({ name }) => name === 'stale'))
      assert.deepEqual(effects(db), ['attempt 2'])
    },

    'a timeout rolls back': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
      queue.work(
        async (_, ctx) => {
          await ctx.tx('insert into effects values (1)')
          await aborted(ctx.signal)
          return 'too late'
        },
        { transaction: true },
      )
      const { id } = await queue.push('x', { timeout: 30 })
      const { error } = await inState(pond, id, 'dead')
      assert.equal(error?.code, 'TimedOut')
      assert.deepEqual(effects(db), [])
    },

    'a push inside the handler’s transaction exists when that commits': async (place) => {
      const pond = await place.open()
      const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
      const next = pond.queue<string>('next')
      const pushed: string[] = []
      queue.work(
        async (job, ctx) => {
          const { id, existing } = await next.push(`after ${job.data}`, { tx: ctx.tx })
          const many = await next.pushMany(['x', 'y'], { tx: ctx.tx })
          assert.equal(existing, false)
          pushed.push(id, ...many.map(({ id }) => id))
          if (job.data === 'bad') throw new Error('no')
        },
        { transaction: true, concurrency: 1 },
      )
      await inState(pond, (await queue.push('bad')).id, 'dead')
      assert.equal((await next.stats()).counts.waiting, 0)
      await inState(pond, (await queue.push('good')).id, 'done')
      assert.deepEqual(
        (await next.jobs('waiting')).map(({ id }) => id),
        pushed.slice(3),
      )
      const results = next.work((job) => job.data, { concurrency: 1 })
      assert.equal(await pond.result(pushed[3] ?? ''), 'after good')
      await results.close()
    },

    'a push inside the caller’s own transaction exists when that commits': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const queue = pond.queue<string>('q')
      const seen: string[] = []
      queue.work((job) => void seen.push(job.data))
      db.exec('begin')
      db.exec(`insert into effects values ('order')`)
      const rolledBack = await queue.push('rolled back', { tx: db })
      db.exec('rollback')
      assert.equal(await pond.job(rolledBack.id), undefined)
      db.exec('begin')
      db.exec(`insert into effects values ('order')`)
      const { id } = await queue.push('committed', { tx: db, priority: 8 })
      assert.equal(await pond.job(id), undefined, 'not before the commit')
      db.exec('commit')
      await inState(pond, id, 'done')
      assert.equal((await pond.job(id))?.priority, 8)
      assert.deepEqual([seen, effects(db)], [['committed'], ['order']])
    },

    'a push inside a transaction knows of full queues and of keys': async (place) => {
      const pond = await place.open()
      using db = database(place)
      const queue = pond.queue<number>('q', { capacity: 1 })
      const one = await queue.push(1, { key: 'k' })
      db.exec('begin')
      assert.deepEqual(await queue.push(2, { tx: db, key: 'k' }), { id: one.id, existing: true })
      await refused(queue.push(3, { tx: db }), 'QueueFull')
      db.exec('commit')
      assert.equal((await queue.stats()).counts.waiting, 1)
    },

    'what is no open transaction on the same database is refused': async (place) => {
      const pond = await place.open()
      using db = database(place)
      using other = new DatabaseSync(':memory:')
      other.exec('begin')
      const queue = pond.queue<number>('q')
      for (const tx of [{}, 'tx', 5, () => {}, db, other]) {
        await refused(queue.push(1, { tx }), 'TransactionMismatch')
        await refused(queue.pushMany([1], { tx }), 'TransactionMismatch')
      }
      const elsewhere = await Millpond.open('memory:')
      await elsewhere.close()
      assert.equal((await queue.stats()).counts.waiting, 0)
    },
  },
  'transactions',
)
