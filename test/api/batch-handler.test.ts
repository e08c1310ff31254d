/** Handlers of batches: what they answer, and how their jobs end. When a batch starts is in `test/unit/worker-batches.test.ts`. */
import assert from 'node:assert/strict'
import { z } from 'zod'
import { type BatchContext, type BatchWorkOptions, type Job, Outcome, type Queue } from '../../src/index.ts'
import { Millpond } from '../../src/pond/millpond.ts'
import { openStore } from '../../src/stores/open.ts'
import { newJob } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { aborted, atWork, diary, gate, inState, numbers, onEachStore, outlast, refused } from './suite.ts'

const ONCE = { retry: { attempts: 1 } }
const idsOf = (pushed: readonly { id: string }[]) => pushed.map(({ id }) => id)

const batch = (max: number, more: Partial<BatchWorkOptions['batch']> = {}): BatchWorkOptions => ({
  batch: { max, ...more },
})

onEachStore('batch handlers', {
  'an array answers for each job in order': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2, 3]))
    const sizes: number[] = []
    queue.work((jobs) => {
      sizes.push(jobs.length)
      return jobs.map(({ data }) => (data === 2 ? undefined : data * 10))
    }, batch(10))
    assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [10, undefined, 30])
    assert.deepEqual(sizes, [3])
    await until(() => entries.filter(({ name }) => name === 'completed').length === 3)
    const told = entries
      .filter(({ name }) => name !== 'pushed')
      .map(({ name, event }) => [name, 'id' in event && event.id])
    assert.deepEqual(told, [...ids.map((id) => ['started', id]), ...ids.map((id) => ['completed', id])])
  },

  'a Map answers by job id': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2]))
    queue.work(
      (jobs) =>
        new Map<string, number>([['other', 0], ...jobs.map(({ id, data }): [string, number] => [id, data + 1])]),
      batch(10),
    )
    assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [2, 3])
  },

  'without an answer all are done': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2]))
    queue.work(async () => {}, batch(10))
    assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [undefined, undefined])
  },

  'an entry may be an Error or an Outcome, for its job alone': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
    const ids = idsOf(await queue.pushMany(['ok', 'error', 'retry', 'give up', 'large']))
    const attempts: string[] = []
    queue.work((jobs, ctx) => {
      attempts.push(...jobs.map(({ data, attempt }) => `${data} ${attempt}`))
      return jobs.map(({ data }) => {
        if (data === 'error') return new RangeError('no')
        if (data === 'retry') return ctx.retry(0, 'again')
        if (data === 'give up') return ctx.giveUp('never')
        return data === 'large' ? 'x'.repeat(1_100_000) : data
      })
    }, batch(10))
    const [ok, ...bad] = ids as [string, string, string, string, string]
    assert.equal(await pond.result(ok), 'ok')
    const errors = []
    for (const id of bad) {
      const { error, attempt } = await inState(pond, id, 'dead')
      errors.push([attempt, error?.code, error?.name])
    }
    assert.deepEqual(errors, [
      [2, 'HandlerFailed', 'RangeError'],
      [2, 'HandlerFailed', 'Outcome'],
      [1, 'GaveUp', 'Outcome'],
      [1, 'PayloadTooLarge', 'MillpondError'],
    ])
    assert.deepEqual(attempts.slice(0, 5), ['ok 1', 'error 1', 'retry 1', 'give up 1', 'large 1'])
    assert.deepEqual(attempts.slice(5).sort(), ['error 2', 'retry 2'])
  },

  'what the handler throws is for all; so is an Outcome that it throws or returns': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
    for (const [index, answer] of [
      () => {
        throw new RangeError('no')
      },
      () => Promise.reject('no error'),
      () => {
        throw Outcome.giveUp()
      },
      (ctx: BatchContext) => ctx.giveUp(),
    ].entries()) {
      const ids = idsOf(await queue.pushMany(['a', 'b']))
      const worker = queue.work((_, ctx) => answer(ctx), batch(10))
      const codes = []
      for (const id of ids) {
        const { error, attempt } = await inState(pond, id, 'dead')
        codes.push(`${attempt} ${error?.code} ${error?.name}`)
      }
      const expected = [
        '2 HandlerFailed RangeError',
        '2 HandlerFailed NonError',
        '1 GaveUp Outcome',
        '1 GaveUp Outcome',
      ]
      assert.deepEqual(codes, [expected[index], expected[index]])
      await worker.close()
    }
  },

  'jobs without an entry fail with BatchMismatch, and all do if whose entry is whose is not known': async ({
    open,
  }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', ONCE)
    const answers: [(jobs: Job[]) => unknown, (string | undefined)[], RegExp][] = [
      [() => ['a', 'b'], [undefined, undefined, 'BatchMismatch'], /each of its 3 jobs.*got an array of 2$/],
      [([, job]) => new Map([[job?.id ?? '', 'b']]), ['BatchMismatch', undefined, 'BatchMismatch'], /a Map without/],
      [() => ['a', 'b', 'c', 'd'], ['BatchMismatch', 'BatchMismatch', 'BatchMismatch'], /got an array of 4$/],
      [() => 'abc', ['BatchMismatch', 'BatchMismatch', 'BatchMismatch'], /got a string/],
      [() => null, ['BatchMismatch', 'BatchMismatch', 'BatchMismatch'], /got null/],
      [() => ({ 0: 'a' }), ['BatchMismatch', 'BatchMismatch', 'BatchMismatch'], /got an object/],
      [(jobs) => jobs.splice(0).slice(0, 2), [undefined, undefined, 'BatchMismatch'], /got an array of 2$/],
    ]
    for (const [answer, codes, message] of answers) {
      const ids = idsOf(await queue.pushMany([1, 2, 3]))
      const worker = queue.work((jobs) => answer(jobs) as unknown[], batch(10))
      for (const [index, id] of ids.entries()) {
        const code = codes[index]
        const { error } = await inState(pond, id, code === undefined ? 'done' : 'dead')
        assert.equal(error?.code, code)
        if (code !== undefined) assert.match(error?.message ?? '', message)
      }
      await worker.close()
    }
  },

  'concurrency counts batches, and is 1 unless set': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    const ends = gate()
    await queue.pushMany(numbers(10))
    const one = queue.work(() => ends.opened, batch(3))
    await atWork(one)
    assert.deepEqual(one.load, { running: 1, buffered: 0, slots: 1 })
    const two = queue.work(() => ends.opened, { ...batch(2), concurrency: 2 })
    await atWork(two, 2)
    assert.deepEqual([one.load.running, (await queue.stats()).counts.waiting], [1, 3])
    ends.open()
    await until(async () => (await queue.stats()).counts.done === 10)
  },

  'a job that cannot be used fails alone, and the handler does not get it': async ({ open }) => {
    const pond = await open()
    const strict = pond.queue('q', { schema: z.number().transform((n) => n * 2) })
    const ids = idsOf(await pond.queue<unknown>('q').pushMany([1, 'two', 3], { attempts: 1 }))
    const seen: unknown[] = []
    const worker = strict.work((jobs) => {
      seen.push(jobs.map(({ data }) => data))
      return jobs.map(({ data }) => data + 1)
    }, batch(10))
    const [first, second, third] = ids as [string, string, string]
    assert.deepEqual([await pond.result(first), await pond.result(third)], [3, 7])
    assert.equal((await inState(pond, second, 'dead')).error?.code, 'SchemaMismatch')
    assert.deepEqual(seen, [[2, 6]])
    const all = idsOf(await pond.queue<unknown>('q').pushMany(['one', 'two'], { attempts: 1 }))
    for (const id of all) await inState(pond, id, 'dead')
    assert.equal(seen.length, 1, 'no batch without jobs')
    await worker.close()
    assert.deepEqual(worker.load.running, 0)
  },

  'so does one whose data cannot be decoded': async ({ url }) => {
    const store = await openStore(url, {})
    const pond = new Millpond(store, 1_000_000)
    try {
      const jobs = ['"good"', '"bad'].map((body) => newJob({ attempts: 1, data: { encoding: 'json', body } }))
      await store.operations.push({ jobs })
      const seen: unknown[] = []
      pond.queue<string>('q').work((all) => void seen.push(...all.map(({ data }) => data)), batch(10))
      const [good, bad] = idsOf(jobs) as [string, string]
      await inState(pond, good, 'done')
      assert.equal((await inState(pond, bad, 'dead')).error?.code, 'PayloadNotDecodable')
      assert.deepEqual(seen, ['good'])
    } finally {
      await pond.close()
    }
  },

  'progress, attempt and signal are of each job, by ctx.of': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', ONCE)
    const ids = idsOf(await queue.pushMany([1, 2]))
    const ends = gate()
    queue.work(async (jobs, ctx) => {
      for (const job of jobs) ctx.of(job).progress(job.data * 5)
      assert.throws(() => ctx.of({ id: 'other' }), { code: 'InvalidOption' })
      assert.throws(() => ctx.tx, { code: 'InvalidOption' })
      await ends.opened
      return jobs.map((job) => ctx.of(job).giveUp())
    }, batch(10))
    for (const [index, id] of ids.entries()) await until(async () => (await pond.job(id))?.progress === 5 * (index + 1))
    ends.open()
    for (const id of ids) assert.equal((await inState(pond, id, 'dead')).error?.code, 'GaveUp')
  },

  'a job that is cancelled or times out ends alone, and its answer does not count': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<string>('q', ONCE)
    const { id: cancelled } = await queue.push('cancelled')
    const { id: late } = await queue.push('late', { timeout: 30 })
    const { id: good } = await queue.push('good')
    const ends = gate()
    const reasons: unknown[] = []
    let whole: AbortSignal | undefined
    const worker = queue.work(async (jobs, ctx) => {
      whole = ctx.signal
      for (const job of jobs) {
        const { signal } = ctx.of(job)
        signal.addEventListener('abort', () => reasons.push(`${job.data} ${signal.reason.code}`))
      }
      await ends.opened
      return jobs.map(({ data }) => data)
    }, batch(10))
    await atWork(worker)
    await pond.cancel(cancelled)
    await until(() => reasons.length === 2)
    assert.deepEqual(reasons.sort(), ['cancelled JobCancelled', 'late TimedOut'])
    assert.equal((await inState(pond, late, 'dead')).error?.code, 'TimedOut')
    assert.deepEqual([worker.load.running, whole?.aborted], [1, false])
    ends.open()
    assert.equal(await pond.result(good), 'good')
    assert.deepEqual([(await pond.job(cancelled))?.state, (await pond.job(late))?.state], ['cancelled', 'dead'])
    await until(() => worker.load.running === 0)
    const of = (name: string) => entries.filter((entry) => entry.name === name).length
    await until(() => of('completed') === 1)
    assert.deepEqual([of('stale'), of('dead'), whole?.aborted], [1, 1, false])
  },

  'when every job is over the signal is aborted, and the slot is free': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2]))
    let ended: Promise<unknown> | undefined
    const worker = queue.work((_, ctx) => {
      ended = aborted(ctx.signal)
      return new Promise(() => {})
    }, batch(10))
    await atWork(worker)
    await pond.cancel(ids[0] ?? '')
    await until(async () => (await pond.job(ids[0] ?? ''))?.state === 'cancelled')
    assert.equal(worker.load.running, 1)
    await pond.cancel(ids[1] ?? '')
    assert.ok(ended)
    await refused(Promise.reject(await ended), 'JobCancelled')
    assert.equal(worker.load.running, 0)
    assert.deepEqual(await worker.close(), { finished: 0, givenBack: 0 })
  },

  'a batch that lost its leases changes nothing': async ({ open }) => {
    let ahead = 0
    const pond = await open({ clock: () => Date.now() + ahead })
    const entries = diary(pond)
    const queue = pond.queue<number>('q', { lease: '30s' })
    const ids = idsOf(await queue.pushMany([1, 2]))
    const going = gate()
    const worker = queue.work(
      async (jobs) => {
        if (jobs[0]?.attempt === 1) await going.opened
        return jobs.map(({ attempt }) => attempt)
      },
      { ...batch(10), concurrency: 2 },
    )
    await atWork(worker)
    await outlast(
      () => (ahead += 31_000),
      () => entries.filter(({ name }) => name === 'lost').length === 2,
    )
    assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [2, 2])
    going.open()
    await until(() => entries.filter(({ name }) => name === 'stale').length === 2)
  },

  'close waits for the batch, gives collected jobs back, and gives up after its timeout': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    await queue.pushMany([1, 2])
    const waiting = queue.work(() => {}, batch(10, { within: '10s' }))
    await until(() => waiting.load.buffered === 2)
    assert.deepEqual(await waiting.close(), { finished: 0, givenBack: 2 })
    assert.equal((await queue.stats()).counts.waiting, 2)

    const ends = gate()
    const finishing = queue.work(() => ends.opened, batch(10))
    await atWork(finishing)
    const closed = finishing.close()
    ends.open()
    assert.deepEqual(await closed, { finished: 2, givenBack: 0 })

    await queue.pushMany([3, 4])
    let reason: Promise<unknown> | undefined
    const hanging = queue.work((_, ctx) => {
      reason = aborted(ctx.signal)
      return new Promise(() => {})
    }, batch(10))
    await atWork(hanging)
    assert.deepEqual(await hanging.close({ timeout: 20 }), { finished: 0, givenBack: 2 })
    assert.ok(reason)
    await refused(Promise.reject(await reason), 'Closed')
    assert.deepEqual(hanging.load, { running: 0, buffered: 0, slots: 1 })
    assert.equal((await queue.stats()).counts.waiting, 2)
  },

  'jobs that wait for a fuller batch are not given back meanwhile': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2]))
    queue.work((jobs) => jobs.map(() => jobs.length), { ...batch(10, { within: 30 }), window: 0 })
    assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [2, 2])
    assert.deepEqual(
      entries.filter(({ name }) => name === 'released'),
      [],
    )
  },

  'waits and runs are measured for each job': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const ids = idsOf(await queue.pushMany([1, 2, 3]))
    const worker = queue.work(() => {}, batch(10))
    await Promise.all(ids.map((id) => pond.result(id)))
    await worker.close()
    const { wait, run } = await queue.stats()
    assert.deepEqual([wait.count, run.count], [3, 3])
  },

  'bad options are refused': async ({ open }) => {
    const queue: Queue = (await open()).queue('q', { lease: '10s' })
    const lanes = [{ minPriority: 7, reserve: 1 }]
    const refusals: [object, RegExp][] = [
      [{ batch: 5 }, /batch takes an object/],
      [{ batch: {} }, /batch: max is missing/],
      [{ batch: { max: 0 } }, /max must be a whole number from 1 to 10000/],
      [{ batch: { max: 10_001 } }, /max/],
      [{ batch: { max: 1.5 } }, /max/],
      [{ batch: { max: 5, within: -1 } }, /within/],
      [{ batch: { max: 5, within: '5s' } }, /batch.within must be less than half of the lease of 10000 ms/],
      [{ batch: { max: 5, min: 0 } }, /min/],
      [{ batch: { max: 5, min: 6 } }, /batch.min is 6, more than batch.max, 5/],
      [{ batch: { max: 5, sameGroup: 1 } }, /sameGroup must be true or false/],
      [{ batch: { max: 5, size: 1 } }, /unknown option "size"/],
      [{ batch: { max: 5 }, lanes }, /lanes does not go with batch/],
      [{ batch: { max: 5 }, replica: 'postgres://localhost' }, /replica does not go with batch/],
      [{ batch: { max: 5 }, replicaTimeout: 5 }, /replicaTimeout does not go with batch/],
    ]
    for (const [options, message] of refusals) {
      await refused(() => queue.work(() => {}, options as BatchWorkOptions), 'InvalidOption', message)
    }
    await queue.work(() => {}, { batch: { max: 10_000, within: '4999ms', min: 10_000 } }).close()
  },
})

/** Only for `tsc`: never called. */
export function types(queue: Queue<{ to: string }>): void {
  queue.work((jobs, ctx) => jobs.map((job) => ctx.of(job).retry(job.data.to.length)), { batch: { max: 5 } })
  queue.work(async (jobs) => new Map(jobs.map(({ id, data }) => [id, data.to])), { batch: { max: 5, within: '20ms' } })
  queue.work((job, ctx) => ctx.progress(job.data.to), { concurrency: 5 })
  // @ts-expect-error: with `batch` the handler gets an array.
  queue.work((jobs) => jobs.data, { batch: { max: 5 } })
  // @ts-expect-error: without it, one job.
  queue.work((job) => job.length)
  // @ts-expect-error: the context of a batch has no progress.
  queue.work((_, ctx) => ctx.progress(1), { batch: { max: 5 } })
  // @ts-expect-error: an answer for a batch is an array or a Map.
  queue.work(() => 5, { batch: { max: 5 } })
  // @ts-expect-error: no lanes with batches.
  queue.work(() => [], { batch: { max: 5 }, lanes: [] })
  // @ts-expect-error: `max` is required.
  queue.work(() => [], { batch: {} })
}
