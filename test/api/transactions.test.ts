/** Effects and completions that commit together, and pushes inside transactions; refused where the store has none. */
import assert from 'node:assert/strict'
import type { TransactionQuery } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { effectsOf } from './effects.ts'
import { aborted, atWork, diary, gate, inState, onEachStore, outlast, refused } from './suite.ts'

onEachStore(
  'transactions where there are none',
  {
    'are refused': async ({ open }) => {
      const pond = await open()
      const queue = pond.queue<number>('q')
      await refused(() => queue.work(() => {}, { transaction: true }), 'NotSupported', /which (memory|redis) lacks/)
      await refused(queue.push(1, { tx: {} }), 'NotSupported', /which (memory|redis) lacks/)
      await refused(queue.pushMany([1], { tx: {} }), 'NotSupported')
      assert.equal((await queue.stats()).counts.waiting, 0)
    },
  },
  'no transactions',
)

onEachStore(
  'replicas where there are none',
  {
    'are refused': async ({ open }) => {
      const queue = (await open()).queue<number>('q')
      const work = () => queue.work(() => {}, { replica: 'postgres://localhost' })
      await refused(work, 'NotSupported', /which (memory|sqlite|redis) lacks/)
    },
  },
  'no replicas',
)

onEachStore(
  'transactions',
  {
    'effects and completion commit together': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q')
      queue.work(
        async (job, ctx) => {
          await ctx.tx(db.insert, [job.data])
          const rows = await ctx.tx(db.count)
          assert.deepEqual(await db.all(), [], 'nobody else sees it yet')
          return rows[0]?.count
        },
        { transaction: true, concurrency: 1 },
      )
      const { id } = await queue.push('one')
      assert.equal(await pond.result(id), 1)
      assert.deepEqual(await db.all(), ['one'])
      assert.equal(entries.filter(({ name }) => name === 'completed').length, 1)
    },

    'a push with tx right after its queue was made has the settings of the queue': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      await db.run('begin')
      // On SQLite it holds the file's lock from here on, which the settings must not wait for.
      await db.run(db.insert, ['mine'])
      const queue = pond.queue<string>('q', { retry: { attempts: 3 }, capacity: 1 })
      const { id } = await queue.push('one', { tx: db.tx })
      await refused(queue.push('two', { tx: db.tx }), 'QueueFull')
      await db.run('commit')
      assert.equal((await pond.job(id))?.attempts, 3)
      assert.equal((await pond.job(id))?.state, 'waiting')
      // Rolled back with everything else, the settings are the queue's all the same.
      await db.run('begin')
      const other = pond.queue<string>('other', { retry: { attempts: 4 } })
      await other.push('one', { tx: db.tx })
      await db.run('rollback')
      const late = await other.push('two')
      assert.equal((await pond.job(late.id))?.attempts, 4)
      assert.equal((await other.stats()).counts.waiting, 1)
    },

    'a handler in a transaction pushes to a queue that it makes': async (place) => {
      const pond = await place.open()
      pond.queue<string>('q').work(
        async (job, ctx) => {
          await ctx.tx('select 1')
          const next = pond.queue<string>(job.data, { retry: { attempts: 3 } })
          return (await next.push('one', { tx: ctx.tx })).id
        },
        { transaction: true },
      )
      const { id } = await pond.queue<string>('q').push('next')
      const made = await pond.result(id)
      assert.equal((await pond.job(String(made)))?.attempts, 3)
    },

    'a handler that throws leaves nothing behind': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
      queue.work(
        async (job, ctx) => {
          await ctx.tx(db.insert, [`${job.data} ${job.attempt}`])
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
      assert.deepEqual(await db.all(), [])
      const { id } = await queue.push('retry')
      assert.equal(await pond.result(id), 'done')
      assert.deepEqual(await db.all(), ['retry 2'])
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
      await using db = await effectsOf(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q')
      const going = gate()
      let late: unknown
      let query: TransactionQuery | undefined
      const worker = queue.work(
        async (_, ctx) => {
          query = ctx.tx
          await going.opened
          await aborted(ctx.signal)
          try {
            await ctx.tx(db.insert, ['1'])
          } catch (error) {
            late = error
          }
          return 'ignored'
        },
        { transaction: true },
      )
      const { id } = await queue.push('x')
      await atWork(worker)
      await pond.cancel(id)
      going.open()
      await until(() => late !== undefined)
      await refused(Promise.reject(late), 'JobCancelled')
      assert.ok(query)
      await assert.rejects(query(db.insert, ['2']))
      assert.deepEqual(await db.all(), [])
      assert.equal((await pond.job(id))?.state, 'cancelled')
      assert.ok(entries.some(({ name }) => name === 'stale'))
    },

    'an attempt that lost its lease commits nothing': async (place) => {
      let ahead = 0
      const pond = await place.open({ clock: () => Date.now() + ahead })
      await using db = await effectsOf(place)
      const entries = diary(pond)
      const queue = pond.queue<string>('q', { lease: '30s' })
      const going = gate()
      const worker = queue.work(
        async (job, ctx) => {
          if (job.attempt === 1) await going.opened
          await ctx.tx(db.insert, [`attempt ${job.attempt}`])
        },
        { transaction: true },
      )
      const { id } = await queue.push('x')
      await atWork(worker)
      await outlast(
        () => (ahead += 31_000),
        () => entries.some(({ name }) => name === 'lost'),
      )
      await inState(pond, id, 'done')
      going.open()
      await until(() => entries.some(({ name }) => name === 'stale'))
      assert.deepEqual(await db.all(), ['attempt 2'])
    },

    'a timeout rolls back': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
      queue.work(
        async (_, ctx) => {
          await ctx.tx(db.insert, ['1'])
          await aborted(ctx.signal)
          return 'too late'
        },
        { transaction: true },
      )
      const { id } = await queue.push('x', { timeout: 30 })
      const { error } = await inState(pond, id, 'dead')
      assert.equal(error?.code, 'TimedOut')
      assert.deepEqual(await db.all(), [])
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
      await using db = await effectsOf(place)
      const queue = pond.queue<string>('q')
      const seen: string[] = []
      queue.work((job) => void seen.push(job.data))
      await db.run('begin')
      await db.run(db.insert, ['order'])
      const rolledBack = await queue.push('rolled back', { tx: db.tx })
      await db.run('rollback')
      assert.equal(await pond.job(rolledBack.id), undefined)
      await db.run('begin')
      await db.run(db.insert, ['order'])
      const { id } = await queue.push('committed', { tx: db.tx, priority: 8 })
      assert.equal(await pond.job(id), undefined, 'not before the commit')
      await db.run('commit')
      await inState(pond, id, 'done')
      assert.equal((await pond.job(id))?.priority, 8)
      assert.deepEqual([seen, await db.all()], [['committed'], ['order']])
    },

    'a push inside a transaction knows of full queues and of keys': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      const queue = pond.queue<number>('q', { capacity: 1 })
      const one = await queue.push(1, { key: 'k' })
      await db.run('begin')
      assert.deepEqual(await queue.push(2, { tx: db.tx, key: 'k' }), { id: one.id, existing: true })
      await refused(queue.push(3, { tx: db.tx }), 'QueueFull')
      await db.run('commit')
      assert.equal((await queue.stats()).counts.waiting, 1)
    },

    'what is no open transaction on the same database is refused': async (place) => {
      const pond = await place.open()
      await using db = await effectsOf(place)
      await using other = await db.elsewhere()
      await other.run('begin')
      const queue = pond.queue<number>('q')
      for (const tx of [{}, 'tx', 5, () => {}, db.tx, other.tx]) {
        await refused(queue.push(1, { tx }), 'TransactionMismatch')
        await refused(queue.pushMany([1], { tx }), 'TransactionMismatch')
      }
      assert.equal((await queue.stats()).counts.waiting, 0)
    },
  },
  'transactions',
)
