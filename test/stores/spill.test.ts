/** Spill-over from memory to a durable store: where jobs are, in which order they come, and what a new process finds. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type ErrorCode, isMillpondError, Millpond, type QueueOptions } from '../../src/index.ts'
import { emptyPlaces, STORES } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { newId } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const DURABLE = ['sqlite', 'redis', 'postgres']
const fails = (code: ErrorCode) => (error: unknown) => isMillpondError(error, code)

interface Place {
  /** A pond of a new process: memory over the durable store. */
  open(): Promise<Millpond>
  /** The durable store itself. */
  look(): Promise<Millpond>
}

function placeOf(t: TestContext, url: string): Place {
  const opened = async (pond: Promise<Millpond>) => {
    after(t, async () => (await pond).close())
    return pond
  }
  return { open: () => opened(Millpond.open('memory:', { spill: url })), look: () => opened(Millpond.open(url)) }
}

const queueOf = (pond: Millpond, capacity: number, options: QueueOptions = {}) =>
  pond.queue<number>('q', { capacity, whenFull: 'spill', ...options })

/** Runs all that waits, one after the other. @returns the payloads in the order of their starts */
async function drain(pond: Millpond, options: QueueOptions = {}): Promise<number[]> {
  const queue = queueOf(pond, 2, options)
  const order: number[] = []
  const worker = queue.work((job) => void order.push(job.data), { concurrency: 1 })
  await until(async () => {
    const { counts } = await queue.stats()
    return counts.waiting + counts.running + counts.scheduled === 0
  })
  await worker.close()
  return order
}

const waitingIn = async (pond: Millpond, queue = 'q'): Promise<number> =>
  (await pond.queue(queue).stats()).counts.waiting

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, n) => from + n)

for (const { name, skip, place } of STORES.filter((store) => DURABLE.includes(store.name))) {
  describe(`spill-over to ${name}`, { skip: skip ?? false }, () => {
    const newUrl = emptyPlaces(place)
    test('what is over the capacity goes to the file and comes back in order', async (t) => {
      const { open, look } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 10)
      for (const n of numbers(1, 50)) await queue.push(n)
      await queue.pushMany(numbers(51, 500))
      assert.equal(await waitingIn(await look()), 490)
      assert.equal(await waitingIn(pond), 500)
      assert.deepEqual(await drain(pond), numbers(1, 500))
      assert.equal(await waitingIn(await look()), 0)
      // Nothing is spilled any more, so memory alone does it again.
      await queue.push(501)
      assert.equal(await waitingIn(await look()), 0)
    })

    test('priorities go before places, wherever the jobs are', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 2)
      const priorities = [1, 4, 9, 4, 0, 9, 1, 4]
      for (const [n, priority] of priorities.entries()) await queue.push(n, { priority })
      assert.deepEqual(await drain(pond), [2, 5, 1, 3, 7, 0, 6, 4])
    })

    test('what comes behind a job of its call that goes to the file goes there, too', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 3)
      const [first] = await queue.pushMany(numbers(1, 4))
      await pond.cancel(first?.id ?? '')
      // The file alone can tell whether it has the key, so the first one goes there.
      await queue.pushMany([5, 6], { priority: 9, each: (n) => (n === 5 ? { key: 'k' } : {}) })
      assert.deepEqual(await drain(pond), [5, 6, 2, 3, 4])
    })

    test('a delayed job waits in the file until it is due', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 1)
      await queue.push(1)
      // Long enough for the others to start first, also where much else runs.
      await queue.push(3, { delay: 1500 })
      await queue.push(2)
      assert.deepEqual((await queue.stats()).counts.scheduled, 1)
      assert.deepEqual(await drain(pond), [1, 2, 3])
    })

    test('groups take turns although one has a long backlog', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const limits = { limits: { group: { running: 1 } } }
      const queue = queueOf(pond, 4, limits)
      await queue.pushMany(numbers(1, 100), { group: 'large' })
      await queue.push(1_000, { group: 'small' })
      const order = await drain(pond, { ...limits, capacity: 4 })
      assert.equal(order.length, 101)
      assert.ok(order.indexOf(1_000) < 10, `the small group's job came as number ${order.indexOf(1_000)}`)
    })

    test('a group at its limit keeps no other group in the file', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 4, { limits: { group: { running: 1 } } })
      await queue.pushMany(numbers(1, 30), { group: 'busy' })
      await queue.push(1_000, { group: 'free' })
      const started: number[] = []
      const end = Promise.withResolvers<void>()
      const worker = queue.work(
        (job) => {
          started.push(job.data)
          return job.data === 1 ? end.promise : undefined
        },
        { concurrency: 3 },
      )
      await until(() => started.includes(1_000), 'the other group starts while the busy one is at its limit')
      assert.deepEqual(started, [1, 1_000])
      end.resolve()
      await until(() => started.length === 31)
      await worker.close()
    })

    test('a key is known in memory and in the file', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 1)
      const first = await queue.push(1, { key: 'a' })
      const second = await queue.push(2, { key: 'b' })
      const again = await Promise.all([
        queue.push(3, { key: 'b' }),
        queue.push(4, { key: 'a' }),
        queue.push(5, { key: 'b' }),
      ])
      assert.deepEqual(
        again.map(({ id, existing }) => ({ id, existing })),
        [second, first, second].map(({ id }) => ({ id, existing: true })),
      )
      assert.deepEqual(await drain(pond), [1, 2])
      assert.equal((await queue.push(6, { key: 'b' })).existing, false)
    })

    test('an id is known in memory, in the file, and after a restart', async (t) => {
      const { open } = placeOf(t, newUrl())
      const one = await open()
      const ids = [newId(), newId(), newId()]
      for (const id of ids) await queueOf(one, 1).push(1, { id })
      for (const id of ids) assert.equal((await queueOf(one, 1).push(2, { id })).existing, true)
      await one.close()
      const two = await open()
      for (const id of ids) assert.equal((await queueOf(two, 1).push(3, { id })).existing, true)
      assert.deepEqual(await drain(two), [1, 1, 1])
      for (const id of ids) assert.equal((await queueOf(two, 1).push(4, { id })).existing, true)
    })

    test('people see both stores as one', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 2)
      const pushed = await queue.pushMany(numbers(1, 7))
      const ids = pushed.map(({ id }) => id)
      const jobs = await Promise.all(ids.map((id) => pond.job(id)))
      assert.deepEqual(
        jobs.map((job) => job?.state),
        ids.map(() => 'waiting'),
      )
      const first = await queue.jobs('waiting', { limit: 3 })
      const rest = await queue.jobs('waiting', { after: first.at(-1)?.cursor })
      assert.deepEqual(
        [...first, ...rest].map(({ id }) => id),
        ids,
      )
      assert.match((await pond.explain(ids[6] ?? ''))?.text ?? '', /6 /)
      assert.equal(await pond.cancel(ids[0] ?? ''), 'cancelled')
      assert.equal(await pond.cancel(ids[6] ?? ''), 'cancelled')
      assert.deepEqual((await queue.stats()).counts.cancelled, 2)
      assert.deepEqual(await drain(pond), numbers(2, 6))
    })

    test('a close hands all to the file, and a new process takes it up in order', async (t) => {
      const { open, look } = placeOf(t, newUrl())
      const one = await open()
      const queue = queueOf(one, 3)
      await queue.pushMany(numbers(1, 9))
      await queue.push(10, { delay: '1h' })
      assert.equal((await one.close()).dropped, 0)
      const file = await look()
      const counts = (await file.stats()).map(({ counts }) => counts)
      assert.equal(
        counts.reduce((sum, { waiting }) => sum + waiting, 0),
        9,
      )
      assert.equal(
        counts.reduce((sum, { scheduled }) => sum + scheduled, 0),
        1,
      )
      await file.close()

      const two = await open()
      assert.equal(await waitingIn(two), 9)
      const later = queueOf(two, 3)
      await later.push(11)
      const order: number[] = []
      const worker = later.work((job) => void order.push(job.data), { concurrency: 1 })
      await until(() => order.length === 10)
      await worker.close()
      assert.deepEqual(order, [...numbers(1, 9), 11])
    })

    test('what is done, dead or cancelled is known after a restart, with its result', async (t) => {
      const { open } = placeOf(t, newUrl())
      const one = await open()
      const queue = queueOf(one, 5, { retry: { attempts: 1 } })
      const [done, dead] = await queue.pushMany([1, 2])
      const worker = queue.work((job) => {
        if (job.data === 2) throw new Error('no')
        return 'yes'
      })
      await until(async () => (await queue.stats()).counts.dead === 1)
      await worker.close()
      await one.close()
      const two = await open()
      assert.equal(await two.result(done?.id ?? ''), 'yes')
      const job = await two.job(dead?.id ?? '')
      assert.equal(job?.state, 'dead')
      assert.equal(job?.error?.message, 'no')
      assert.equal(await queueOf(two, 5).requeue([dead?.id ?? '']), 1)
      assert.deepEqual(await drain(two), [2])
    })

    test('changes in bulk are over both stores', async (t) => {
      const { open } = placeOf(t, newUrl())
      const pond = await open()
      const queue = queueOf(pond, 10)
      await queue.pushMany(numbers(1, 1200))
      const { count, sample } = await queue.cancelAll({}, { dryRun: true })
      assert.deepEqual([count, sample.length], [1200, 10])
      assert.equal((await queue.cancelAll({}, { limit: 1150 })).changed, 1150)
      assert.equal((await queue.cancelAll()).changed, 50)
      assert.equal((await queue.requeueAll({ state: 'cancelled' })).changed, 1200)
      assert.deepEqual(
        (await drain(pond)).toSorted((a, b) => a - b),
        numbers(1, 1200),
      )
    })

    test('a full queue without whenFull: spill rejects, and so does any other store with it', async (t) => {
      const { open, look } = placeOf(t, newUrl())
      const pond = await open()
      const queue = pond.queue('q', { capacity: 1 })
      await queue.push(1)
      await assert.rejects(queue.push(2), fails('QueueFull'))
      const file = await look()
      assert.throws(() => file.queue('q', { whenFull: 'spill' }), fails('NotSupported'))
      const memory = await Millpond.open('memory:')
      assert.throws(() => memory.queue('q', { whenFull: 'spill' }), fails('NotSupported'))
      await memory.close()
    })
  })
}

test('the spill store is a URL in the options or in the URL, and must be durable', async (t) => {
  const path = join(scratch(t), 'spill.db')
  for (const pond of [
    await Millpond.open(`memory:?spill=sqlite:${path}?sync=normal`),
    await Millpond.open('memory:', { spill: { url: `sqlite:${path}`, sync: 'normal' } }),
    await Millpond.open('memory:', { spill: new URL(`sqlite:${path}`) }),
  ]) {
    const { spill, durable } = pond.store.capabilities
    assert.deepEqual({ spill, durable }, { spill: true, durable: false })
    await pond.close()
  }
  await assert.rejects(Millpond.open('memory:', { spill: 'memory:' }), fails('NotSupported'))
  // @ts-expect-error: no URL
  await assert.rejects(Millpond.open('memory:', { spill: 3 }), /spill takes the URL/)
  // @ts-expect-error: url is missing
  await assert.rejects(Millpond.open('memory:', { spill: { uri: 'x' } }), /or an object with url; got an object/)
  await assert.rejects(Millpond.open('memory:', { spill: 'nosuch:x' }), fails('UnknownScheme'))
  await assert.rejects(Millpond.open(`sqlite:${path}`, { spill: 'memory:' }), fails('InvalidOption'))
})
