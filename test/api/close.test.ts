/** The end of workers and ponds: what finishes, what is given back, what is refused. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { aborted, atWork, diary, gate, numbers, onEachStore, refused } from './suite.ts'

onEachStore('close', {
  'lets what runs finish': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<number>('q')
    const going = gate()
    const worker = queue.work(() => going.opened, { concurrency: 3 })
    await queue.pushMany([1, 2, 3])
    await atWork(worker, 3)
    // Not that long: no longer than what runs does.
    const closing = pond.close({ timeout: '24d' })
    going.open()
    assert.deepEqual(await closing, { finished: 3, givenBack: 0, dropped: 0 })
    assert.equal(entries.filter(({ name }) => name === 'completed').length, 3)
  },

  'twice is once': async ({ open }) => {
    const pond = await open()
    const worker = pond.queue('q').work(() => {})
    assert.equal(...(await Promise.all([worker.close(), worker.close()])))
    const [first, second] = await Promise.all([pond.close(), pond.close({ timeout: 5 })])
    assert.equal(second, first)
    assert.equal(await pond.close(), first)
  },

  'wrong options reject, and close nothing': async ({ open }) => {
    const pond = await open()
    const worker = pond.queue('q').work(() => {})
    const wrong = [{ timeout: -1 }, { timeout: 'soon' }, { other: 1 }]
    for (const options of wrong) {
      for (const close of [() => pond.close(options), () => worker.close(options)])
        await refused(close(), 'InvalidOption')
    }
    assert.equal(pond.stopping.aborted, false)
    const { id } = await pond.queue('q').push(1)
    await pond.result(id)
    await pond.close()
  },

  'before: jobs run and pushes are taken; what waits for long hears of it': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    queue.work((job) => job.data * 2)
    assert.equal(pond.stopping.aborted, false)
    let result: unknown
    const closing = pond.close({
      before: async () => {
        assert.equal(pond.stopping.aborted, true)
        result = await pond.result((await queue.push(21)).id)
      },
    })
    await refused(Promise.reject(pond.stopping.reason), 'Closed')
    await closing
    assert.equal(result, 42)
    await refused(queue.push(1), 'Closed')
  },

  'before: closes the pond itself, takes too long, or fails': async ({ open }) => {
    const nested = await open()
    const report = await nested.close({ before: () => nested.close() })
    assert.deepEqual(report, { finished: 0, givenBack: 0, dropped: 0 })

    const slow = await open()
    const never = gate()
    await slow.close({ before: () => never.opened, timeout: 20 })
    await refused(slow.job('01932c0e-5b00-7abc-8def-0123456789ab'), 'Closed')

    for (const fails of [() => Promise.reject(new Error('no server')), () => assert.fail('no server')]) {
      const failed = await open()
      await assert.rejects(failed.close({ before: fails }), /no server/)
      await refused(failed.job('01932c0e-5b00-7abc-8def-0123456789ab'), 'Closed')
    }
  },

  'of a worker leaves the others, and the pond, at work': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const seen: string[] = []
    const one = queue.work(() => void seen.push('one'))
    queue.work(() => void seen.push('two'))
    assert.deepEqual(await one.close(), { finished: 0, givenBack: 0 })
    await Promise.all((await queue.pushMany(numbers(20))).map(({ id }) => pond.result(id)))
    assert.deepEqual(new Set(seen), new Set(['two']))
  },

  'starts nothing new': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const going = gate()
    let started = 0
    queue.work(
      () => {
        started++
        return going.opened
      },
      { concurrency: 2 },
    )
    const pushed = await queue.pushMany(numbers(10))
    await until(() => started === 2)
    const closing = pond.close()
    going.open()
    const report = await closing
    assert.equal(started, 2)
    assert.equal(report.finished, 2)
    assert.equal(report.dropped, pond.store.capabilities.durable ? 0 : 8)
    assert.equal(pushed.length, 10)
  },

  'refuses everything from then on': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    const closing = pond.close()
    const calls: [string, () => unknown][] = [
      ['push', () => queue.push(1)],
      ['pushMany', () => queue.pushMany([1])],
      ['work', () => queue.work(() => {})],
      ['queue', () => pond.queue('r')],
      ['job', () => pond.job(id)],
      ['result', () => pond.result(id)],
      ['cancel', () => pond.cancel(id)],
      ['stats', () => pond.stats()],
      ['explain', () => pond.explain(id)],
      ['removeQueue', () => pond.removeQueue('q')],
      ['workers', () => pond.workers()],
      ['queue.pause', () => queue.pause()],
      ['queue.resume', () => queue.resume()],
      ['queue.override', () => queue.override({ lease: '1m' })],
      ['queue.clearOverrides', () => queue.clearOverrides(['lease'])],
      ['queue.settings', () => queue.settings()],
      ['queue.limitGroup', () => queue.limitGroup('g', { running: 1 })],
      ['queue.groups', () => queue.groups()],
      ['queue.jobs', () => queue.jobs('waiting')],
      ['queue.update', () => queue.update(id, { priority: 1 })],
      ['queue.remove', () => queue.remove([id])],
      ['queue.requeue', () => queue.requeue()],
      ['queue.requeue of ids', () => queue.requeue([id])],
      ['queue.stats', () => queue.stats()],
    ]
    for (const [, call] of calls) await refused(call, 'Closed', /open a new one/)
    await closing
    for (const [, call] of calls) await refused(call, 'Closed', /open a new one/)
  },

  'a handler may push the next job while its worker drains': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const next = pond.queue<number>('next')
    const started = Promise.withResolvers<void>()
    const going = Promise.withResolvers<void>()
    const outcome = Promise.withResolvers<boolean>()
    queue.work(async () => {
      started.resolve()
      await going.promise
      outcome.resolve((await next.push(2)).existing)
    })
    await queue.push(1)
    await started.promise
    const closing = pond.close()
    await refused(() => next.work(() => {}), 'Closed')
    going.resolve()
    assert.equal(await outcome.promise, false)
    await closing
    await refused(() => next.push(3), 'Closed')
  },

  'waits for pushes under way': async ({ open }) => {
    const pond = await open()
    const slow = z.number().refine(() => setImmediate(true))
    const queues = [
      pond.queue<number>('plain'),
      pond.queue<number>('configured', { capacity: 100_000 }),
      pond.queue<number>('checked', { schema: slow }),
      pond.queue<number>('patient', { capacity: 100_000, whenFull: 'wait' }),
    ]
    const pushes = queues.flatMap((queue) => [queue.push(1), queue.push(2), queue.pushMany(numbers(1200))])
    const closing = pond.close()
    const pushed = (await Promise.all(pushes)).flat()
    assert.equal(pushed.length, 4 * 1202)
    assert.equal((await closing).dropped, pond.store.capabilities.durable ? 0 : 4 * 1202)
  },

  'waits for single pushes, however many groups they make': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const pushes = numbers(1300).map((n) => queue.push(n))
    const closing = pond.close()
    await Promise.all(pushes)
    assert.equal((await closing).dropped, pond.store.capabilities.durable ? 0 : 1300)
  },

  'past its time: signals aborted, jobs given back, nothing counted': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let reason: unknown
    const worker = queue.work(async (_, ctx) => {
      reason = await aborted(ctx.signal)
      return 'late'
    })
    await queue.push(1)
    await atWork(worker)
    const report = await pond.close({ timeout: 20 })
    assert.deepEqual(report, { finished: 0, givenBack: 1, dropped: pond.store.capabilities.durable ? 0 : 1 })
    await until(() => reason !== undefined)
    await refused(Promise.reject(reason), 'Closed', /given back/)
  },

  'with no time at all': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const never = gate()
    const worker = queue.work(() => never.opened)
    await queue.push(1)
    await atWork(worker)
    assert.equal((await pond.close({ timeout: 0 })).givenBack, 1)
    never.open()
  },

  'of a worker gives back what it had claimed ahead': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const never = gate()
    // A long window, so that what is claimed ahead stays so until the close.
    const worker = queue.work((job) => (job.data < 0 ? never.opened : undefined), { concurrency: 1, window: '1h' })
    await Promise.all((await queue.pushMany(numbers(5))).map(({ id }) => pond.result(id)))
    await queue.push(-1)
    await until(() => worker.load.running === 1)
    await queue.pushMany(numbers(10))
    await until(() => worker.load.buffered === 10)
    const closing = worker.close()
    never.open()
    assert.deepEqual(await closing, { finished: 1, givenBack: 10 })
    const { counts } = await queue.stats()
    assert.deepEqual([counts.waiting, counts.running], [10, 0])
    assert.ok((await queue.jobs('waiting')).every(({ attempt }) => attempt === 0))
  },

  'is what `await using` does': async ({ open }) => {
    const outer = await open()
    let worker: { close(): Promise<unknown> } | undefined
    {
      await using inner = outer.queue<number>('q').work((job) => job.data)
      worker = inner
      const { id } = await outer.queue<number>('q').push(5)
      assert.equal(await outer.result(id), 5)
    }
    assert.ok(worker)
    const { id } = await outer.queue<number>('q').push(6)
    assert.equal((await outer.job(id))?.state, 'waiting')
    let kept: Millpond | undefined
    {
      await using pond = await Millpond.open('memory:')
      kept = pond
      await pond.queue('q').push(1)
    }
    await refused(kept.queue.bind(kept, 'q'), 'Closed')
  },
})

onEachStore(
  'close, several ponds',
  {
    'past its time, the job waits as if it had never been claimed': async ({ open }) => {
      const [here, there] = [await open(), await open()]
      const queue = here.queue<number>('q')
      const worker = queue.work((_, ctx) => aborted(ctx.signal))
      const { id } = await queue.push(1)
      await atWork(worker)
      await here.close({ timeout: 10 })
      const info = await there.job(id)
      assert.deepEqual([info?.state, info?.attempt], ['waiting', 0])
      there.queue<number>('q').work((job) => `attempt ${job.attempt}`)
      assert.equal(await there.result(id), 'attempt 1')
    },

    'what was pushed stays': async ({ open }) => {
      const here = await open()
      const pushes = here.queue<number>('q').pushMany(numbers(1300))
      await here.close()
      await pushes
      const there = await open()
      assert.equal((await there.queue('q').stats()).counts.waiting, 1300)
    },
  },
  'shared',
)
