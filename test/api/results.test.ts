/** Waiting for what a job comes to, from wherever. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { aborted, atWork, gate, inState, numbers, onEachStore, refused } from './suite.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

onEachStore('result', {
  'awaited before the job has run': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(20)
    const result = pond.result(id, { timeout: '10s' })
    queue.work((job) => ({ twice: job.data * 2 }))
    assert.deepEqual(await result, { twice: 40 })
  },

  'awaited after the job is done, by several, again and again': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    queue.work(() => 'done')
    await inState(pond, id, 'done')
    assert.deepEqual(await Promise.all([pond.result(id), pond.result(id.toUpperCase())]), ['done', 'done'])
    assert.equal(await pond.result(id), 'done')
  },

  'many at once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    queue.work(async (job) => job.data)
    const pushed = await queue.pushMany(numbers(300))
    assert.deepEqual(await Promise.all(pushed.map(({ id }) => pond.result(id))), numbers(300))
  },

  'of a dead job: JobFailed, with the last error as its cause': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
    queue.work((job) => {
      throw new RangeError(`attempt ${job.attempt}`)
    })
    const { id } = await queue.push(1)
    const error = await refused(pond.result(id), 'JobFailed', /2 of 2 attempts: attempt 2/)
    assert.deepEqual([error.id, error.queue], [id, 'q'])
    const { cause } = error
    assert.ok(cause instanceof Error && 'code' in cause)
    assert.deepEqual([cause.name, cause.message, cause.code], ['RangeError', 'attempt 2', 'HandlerFailed'])
  },

  'of a cancelled job: JobCancelled': async ({ open }) => {
    const pond = await open()
    const { id } = await pond.queue<number>('q').push(1)
    const waiting = refused(pond.result(id), 'JobCancelled')
    assert.equal(await pond.cancel(id), 'cancelled')
    await waiting
    const error = await refused(pond.result(id), 'JobCancelled')
    assert.equal(error.id, id)
  },

  'of an unknown job: JobUnknown': async ({ open }) => {
    const pond = await open()
    const error = await refused(pond.result(UNKNOWN), 'JobUnknown', /keep/)
    assert.equal(error.id, UNKNOWN)
    assert.equal(await pond.job(UNKNOWN), undefined)
  },

  'of a job that is not kept: JobUnknown': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { keep: { done: 0 } })
    const { id } = await queue.push(1)
    const worker = queue.work(() => 'gone')
    await until(async () => (await pond.job(id)) === undefined)
    // The store may show it before it has answered the worker, from whom a result that is waited for would come.
    await worker.close()
    await refused(pond.result(id), 'JobUnknown')
  },

  'within a time that is too short, of a job that failed meanwhile: ResultTimeout, with the last error as its cause':
    async ({ open }) => {
      const pond = await open()
      const queue = pond.queue<number>('q', { retry: { backoff: { type: 'fixed', base: '1h', jitter: 0 } } })
      await using _worker = queue.work((job) => {
        throw new RangeError(`attempt ${job.attempt}`)
      })
      const { id } = await queue.push(1)
      // Once before it has failed, and then while it waits for its next attempt. A look at a busy server may take a while.
      for (const timeout of [3000, 500]) {
        const { cause, message } = await refused(pond.result(id, { timeout }), 'ResultTimeout', /the cause says why/)
        assert.ok(cause instanceof Error && 'code' in cause)
        assert.deepEqual([cause.name, cause.message, cause.code], ['RangeError', 'attempt 1', 'HandlerFailed'])
        assert.doesNotMatch(message, /attempt 1/)
      }
    },

  'within a time that is too short: ResultTimeout, and the job goes on': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    for (const timeout of [0, 10]) {
      const error = await refused(pond.result(id, { timeout }), 'ResultTimeout', /goes on/)
      assert.deepEqual([error.id, error.retryable], [id, true])
    }
    queue.work(() => 'in the end')
    assert.equal(await pond.result(id, { timeout: '24d' }), 'in the end')
  },

  'until a signal is aborted': async ({ open }) => {
    const pond = await open()
    const { id } = await pond.queue<number>('q').push(1)
    const controller = new AbortController()
    const waiting = assert.rejects(pond.result(id, { signal: controller.signal }), /enough/)
    controller.abort(new Error('enough'))
    await waiting
    await assert.rejects(pond.result(id, { signal: controller.signal }), /enough/)
  },

  'until the pond closes: Closed': async ({ open }) => {
    const pond = await open()
    const { id } = await pond.queue<number>('q').push(1)
    const waiting = refused(pond.result(id), 'Closed')
    await pond.close()
    await waiting
    await refused(pond.result(id), 'Closed')
  },

  'of a job that finishes while the pond drains is still told': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const done = gate()
    const worker = queue.work(() => done.opened.then(() => 'drained'))
    const { id } = await queue.push(1)
    await atWork(worker)
    const result = pond.result(id)
    const closed = pond.close()
    done.open()
    assert.equal(await result, 'drained')
    await closed
  },

  'that is binary comes as its bytes': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<Uint8Array>('q')
    queue.work((job) => ({ reversed: job.data.toReversed() }))
    const { id } = await queue.push(new Uint8Array([1, 2, 3]))
    const result = await pond.result(id)
    assert.ok(typeof result === 'object' && result !== null && 'reversed' in result)
    assert.ok(result.reversed instanceof Uint8Array)
    assert.deepEqual([...result.reversed], [3, 2, 1])
  },
})

onEachStore(
  'result, several ponds',
  {
    'comes from a worker elsewhere': async ({ open }) => {
      const [here, there] = [await open(), await open()]
      const { id } = await here.queue<number>('q').push(21)
      const result = here.result(id)
      there.queue<number>('q').work((job) => job.data * 2)
      assert.equal(await result, 42)
      assert.equal(await there.result(id), 42)
    },

    'a job cancelled elsewhere aborts the handler here': async ({ open }) => {
      const [here, there] = [await open(), await open()]
      let reason: unknown
      const worker = here.queue<number>('q').work(async (_, ctx) => {
        reason = await aborted(ctx.signal)
      })
      const { id } = await there.queue<number>('q').push(1)
      await atWork(worker)
      assert.equal(await there.cancel(id), 'cancelled')
      await until(() => reason !== undefined)
      await refused(Promise.reject(reason), 'JobCancelled')
    },
  },
  'shared',
)
