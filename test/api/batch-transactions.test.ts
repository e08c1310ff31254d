/** Batches whose effects and completions commit together. */
import assert from 'node:assert/strict'
import type { BatchContext, BatchWorkOptions, Job } from '../../src/index.ts'
import { Millpond } from '../../src/pond/millpond.ts'
import { openStore } from '../../src/stores/open.ts'
import { until } from '../support/until.ts'
import { type Effects, effectsOf } from './effects.ts'
import { aborted, atWork, diary, gate, inState, onEachStore, outlast, type Place, refused } from './suite.ts'

const OPTIONS: BatchWorkOptions = { batch: { max: 10 }, transaction: true }

/** A queue with jobs `a`, `b` and `c`. */
async function scene(place: Place, db: Effects, clock: () => number = Date.now) {
  const pond = await place.open({ clock })
  const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } }, lease: '30s' })
  const entries = diary(pond)
  const [a, b, c] = (await queue.pushMany(['a', 'b', 'c'])).map(({ id }) => id) as [string, string, string]
  const attempts = async () => Promise.all([a, b, c].map(async (id) => (await pond.job(id))?.attempt))
  const events = (name: string) => entries.filter((entry) => entry.name === name).length
  /** Writes what it is about for each job. */
  const write = async (jobs: Job<string>[], ctx: BatchContext) => {
    for (const { data, attempt } of jobs) await ctx.tx(db.insert, [`${data} ${attempt}`])
  }
  return { pond, queue, a, b, c, attempts, events, write }
}

onEachStore(
  'transactions of batches',
  {
    'effects and completions commit together': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, events, write } = await scene(place, db)
      queue.work(async (jobs, ctx) => {
        await write(jobs, ctx)
        await ctx.of(jobs[0] as Job).tx(db.insert, ['of a job'])
        assert.deepEqual(await db.all(), [], 'nobody else sees it yet')
        return jobs.map(({ data }) => data.toUpperCase())
      }, OPTIONS)
      assert.deepEqual([await pond.result(a), await pond.result(b), await pond.result(c)], ['A', 'B', 'C'])
      assert.deepEqual((await db.all()).sort(), ['a 1', 'b 1', 'c 1', 'of a job'])
      await until(() => events('completed') === 3)
    },

    'jobs answered with an Error or an Outcome end after the commit, on their own': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, write } = await scene(place, db)
      queue.work(async (jobs, ctx) => {
        await write(jobs, ctx)
        return jobs.map(({ data }) => (data === 'a' ? new Error('no') : data === 'b' ? ctx.giveUp() : data))
      }, OPTIONS)
      assert.equal(await pond.result(c), 'c')
      assert.equal((await inState(pond, a, 'dead')).attempt, 2)
      assert.equal((await inState(pond, b, 'dead')).attempt, 1)
      assert.deepEqual((await db.all()).sort(), ['a 1', 'b 1', 'c 1'], 'where no job is done nothing is committed')
    },

    'a throw rolls back and fails all': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, write } = await scene(place, db)
      queue.work(async (jobs, ctx) => {
        await write(jobs, ctx)
        throw new Error('after the writes')
      }, OPTIONS)
      for (const id of [a, b, c]) assert.equal((await inState(pond, id, 'dead')).attempt, 2)
      assert.deepEqual(await db.all(), [])
    },

    'with a job that was cancelled meanwhile nothing is committed, and the others run again': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, attempts, events, write } = await scene(place, db)
      const going = gate()
      const sizes: number[] = []
      const worker = queue.work(async (jobs, ctx) => {
        sizes.push(jobs.length)
        if (sizes.length === 1) await going.opened
        await write(jobs, ctx)
        return jobs.map(({ data }) => data)
      }, OPTIONS)
      await atWork(worker)
      await pond.cancel(b)
      await until(() => events('stale') === 1)
      going.open()
      assert.deepEqual([await pond.result(a), await pond.result(c)], ['a', 'c'])
      assert.equal((await inState(pond, b, 'cancelled')).result, undefined)
      assert.deepEqual(
        [sizes, (await db.all()).sort()],
        [
          [3, 2],
          ['a 1', 'c 1'],
        ],
      )
      assert.deepEqual(await attempts(), [1, 1, 1], 'no attempt used up')
    },

    'nor with a job that timed out, nor with a result that cannot be stored': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, write } = await scene(place, db)
      const { id: late } = await queue.push('late', { timeout: 30, attempts: 1 })
      queue.work(async (jobs, ctx) => {
        const slow = jobs.find(({ data }) => data === 'late')
        if (slow !== undefined) await aborted(ctx.of(slow).signal)
        await write(jobs, ctx)
        return jobs.map(({ data }) => (data === 'b' ? 'x'.repeat(1_100_000) : data))
      }, OPTIONS)
      assert.equal((await inState(pond, late, 'dead')).error?.code, 'TimedOut')
      assert.equal((await inState(pond, b, 'dead')).error?.code, 'PayloadTooLarge')
      assert.deepEqual([await pond.result(a), await pond.result(c)], ['a', 'c'])
      assert.deepEqual((await db.all()).sort(), ['a 1', 'c 1'])
    },

    'jobs of which the store alone knows that they are stale end so, and the others run again': async (place) => {
      let ahead = 0
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c, attempts, events, write } = await scene(place, db, () => Date.now() + ahead)
      const going = gate()
      let first: string[] | undefined
      const worker = queue.work(async (jobs, ctx) => {
        if (first === undefined) {
          first = jobs.map(({ data }) => data)
          await going.opened
        }
        await write(jobs, ctx)
      }, OPTIONS)
      await atWork(worker)
      await outlast(
        () => (ahead += 31_000),
        () => events('lost') === 3,
      )
      going.open()
      for (const id of [a, b, c]) await inState(pond, id, 'done')
      assert.deepEqual(first, ['a', 'b', 'c'])
      assert.deepEqual((await db.all()).sort(), ['a 2', 'b 2', 'c 2'])
      assert.deepEqual(await attempts(), [2, 2, 2])
      assert.equal(events('stale'), 3)
    },

    'a batch that never touches its transaction is completed as usual': async (place) => {
      await using db = await effectsOf(place)
      const { pond, queue, a, b, c } = await scene(place, db)
      const plain = queue.work((jobs) => jobs.map(({ data }) => data), OPTIONS)
      assert.deepEqual([await pond.result(a), await pond.result(b), await pond.result(c)], ['a', 'b', 'c'])
      await plain.close()
    },

    'once all its jobs are over it is rolled back': async (place) => {
      await using db = await effectsOf(place)
      const pond = await place.open()
      const queue = pond.queue<string>('q')
      let thrown: unknown
      const worker = queue.work(async (_, ctx) => {
        await ctx.tx(db.insert, ['1'])
        await aborted(ctx.signal)
        try {
          await ctx.tx(db.insert, ['2'])
        } catch (error) {
          await db.run(db.insert, ['of another writer'])
          thrown = error
        }
      }, OPTIONS)
      const { id } = await queue.push('x', { timeout: 30, attempts: 1 })
      await inState(pond, id, 'dead')
      await until(() => thrown !== undefined)
      await refused(Promise.reject(thrown), 'TimedOut')
      assert.deepEqual([await db.all(), worker.load.running], [['of another writer'], 0])
    },

    'the store completes all jobs of a transaction or none': async (place) => {
      await using db = await effectsOf(place)
      const store = await openStore(place.url, {})
      const pond = new Millpond(store, 1_000_000)
      try {
        const queue = pond.queue<number>('q')
        const begin = () => {
          assert.ok(store.transactions)
          return store.transactions.begin('q')
        }
        for (const isUsed of [false, true]) {
          await queue.pushMany([1, 2, 3])
          const { jobs } = await store.operations.claim({ queue: 'q', worker: 'w', limit: 3, lease: 60_000 })
          const completions = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
          const [one, two, three] = completions.map(({ id }) => id) as [string, string, string]
          await store.operations.cancel({ ids: [two] })
          const states = async () =>
            (await store.operations.find({ ids: [one, two, three] })).map((record) => record?.state)
          const torn = begin()
          if (isUsed) await torn.query(db.insert, ['torn'])
          assert.deepEqual(await torn.complete({ queue: 'q', items: completions }), ['ok', 'stale', 'ok'])
          assert.deepEqual(await states(), ['running', 'cancelled', 'running'])
          assert.deepEqual(await db.all(), [])
          const whole = begin()
          if (isUsed) await whole.query(db.insert, ['whole'])
          const held = completions.filter(({ id }) => id !== two)
          assert.deepEqual(await whole.complete({ queue: 'q', items: held }), ['ok', 'ok'])
          assert.deepEqual(await states(), ['done', 'cancelled', 'done'])
          assert.deepEqual(await db.all(), isUsed ? ['whole'] : [])
        }
      } finally {
        await pond.close()
      }
    },
  },
  'transactions',
)
