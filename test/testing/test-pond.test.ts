/** A pond whose clock the test moves: everything that happens by time happens on the way, in order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillpondError } from '../../src/index.ts'
import { openTestPond, type TestPondOptions } from '../../src/testing/index.ts'

const START = new Date('2026-03-01T00:00:00Z')
const open = (options: TestPondOptions = {}) => openTestPond({ now: START, ...options })
const never = () => new Promise<never>(() => {})

test('a delayed job starts at its time, and the clock stands still otherwise', async () => {
  await using pond = await open()
  const queue = pond.queue<{ n: number }>('emails')
  const startedAt: string[] = []
  queue.work(() => {
    startedAt.push(pond.now.toISOString())
  })
  await queue.push({ n: 1 }, { delay: '2d' })
  await queue.push({ n: 2 }, { runAt: new Date('2026-03-05T12:00:00Z') })
  assert.equal((await pond.drain()).scheduled, 2)
  assert.deepEqual(await pond.advance('47h'), {
    done: 0,
    failed: 0,
    dead: 0,
    waiting: 0,
    running: 0,
    scheduled: 2,
    blocked: 0,
  })
  await pond.advance('7d')
  assert.deepEqual(startedAt, ['2026-03-03T00:00:00.000Z', '2026-03-05T12:00:00.000Z'])
  assert.equal(pond.now.toISOString(), '2026-03-09T23:00:00.000Z')
})

test('retries follow by the backoff, until the job is dead', async () => {
  await using pond = await open()
  const queue = pond.queue('flaky', {
    retry: { attempts: 4, backoff: { type: 'exponential', base: '1h', factor: 2, max: '1d', jitter: 0 } },
  })
  const hours: number[] = []
  pond.on('failed', () => {})
  queue.work(() => {
    hours.push((pond.now.getTime() - START.getTime()) / 3_600_000)
    throw new Error('no')
  })
  const { id } = await queue.push({})
  const { failed, dead } = await pond.advance('1d')
  assert.deepEqual(hours, [0, 1, 3, 7])
  assert.deepEqual([failed, dead], [4, 1])
  assert.equal((await pond.job(id))?.state, 'dead')
  await pond.advance('30d')
  assert.equal(await pond.job(id), undefined, 'it is kept no longer')
})

test('schedules fire on the way, each at its time', async () => {
  await using pond = await open()
  const queue = pond.queue<string>('reports')
  const at: string[] = []
  queue.work(() => void at.push(pond.now.toISOString()))
  await pond.schedule('weekly', '0 7 * * MON', queue, 'weekly', { tz: 'Europe/Paris' })
  await pond.schedule('never', '@hourly', queue, 'never', { paused: true })
  const { done } = await pond.advance('30d')
  assert.deepEqual([done, (await pond.pushed(queue.name)).length], [5, 5])
  assert.deepEqual(at.slice(-2), ['2026-03-23T06:00:00.000Z', '2026-03-30T05:00:00.000Z'])
})

test('1,000 schedules, and more than a sweep tells of', async () => {
  await using pond = await open()
  const queue = pond.queue<number>('reports')
  queue.work(() => {}, { concurrency: 100 })
  for (let n = 0; n < 1000; n++) await pond.schedule(`s${n}`, '@daily', queue, n)
  const { done } = await pond.advance('3d')
  assert.equal(done, 3000)
})

test('a rate lets exactly as many jobs start as it says', async () => {
  await using pond = await open()
  const queue = pond.queue<number>('calls', { limits: { rate: { count: 5, per: '1s', burst: 5 } } })
  let started = 0
  queue.work(() => {
    started++
  })
  await queue.pushMany(Array.from({ length: 20 }, (_, index) => index))
  await pond.drain()
  assert.equal(started, 5)
  await pond.advance('1s')
  assert.equal(started, 10)
  const { done } = await pond.drain({ within: '1h' })
  assert.deepEqual([done, started], [10, 20])
  assert.equal(pond.now.getTime() - START.getTime(), 3000)
})

test('a pause that a handler asks for ends by the clock, for its group alone', async () => {
  await using pond = await open()
  const queue = pond.queue<string>('sync', { limits: { group: { running: 1 } } })
  const seen: string[] = []
  queue.work((job, ctx) => {
    const isFirst = !seen.includes(job.data)
    seen.push(job.data)
    return isFirst && job.data === 'a' ? ctx.rateLimited('10m') : undefined
  })
  await queue.push('a', { group: 'a' })
  await queue.push('b', { group: 'b' })
  await pond.advance('9m')
  assert.deepEqual(seen.toSorted(), ['a', 'b'])
  await pond.advance('1m')
  assert.deepEqual(seen.filter((name) => name === 'a').length, 2)
})

test('a timeout ends an attempt by the clock; the lease of its worker goes on', async () => {
  await using pond = await open({ patience: '20ms' })
  const reasons: unknown[] = []
  const queue = pond.queue('slow', {
    timeout: '2h',
    lease: '10s',
    retry: { attempts: 2, backoff: { type: 'exponential', base: '1m', jitter: 0 } },
  })
  pond.on('failed', () => {})
  pond.on('lost', () => assert.fail('no lease is lost'))
  queue.work((_, { signal }) => {
    signal.addEventListener('abort', () => reasons.push(signal.reason))
    return never()
  })
  await queue.push({})
  assert.equal((await pond.advance('119m')).running, 1)
  assert.equal((await pond.advance('1m')).scheduled, 1)
  assert.ok(isMillpondError(reasons[0], 'TimedOut'))
  assert.equal((await pond.advance('4h')).dead, 1)
})

test('a crash drops the claims: the leases end by the clock, and new workers get the jobs', async () => {
  await using pond = await open()
  const queue = pond.queue<string>('jobs', { retry: { attempts: 2 }, lease: '30s' })
  const lost: string[] = []
  pond.on('lost', ({ id, state }) => lost.push(`${id} ${state}`))
  const hold = Promise.withResolvers<string>()
  const called = Promise.withResolvers<AbortSignal>()
  queue.work((_, { signal }) => {
    called.resolve(signal)
    return hold.promise
  })
  const { id } = await queue.push('first')
  const signal = await called.promise
  assert.deepEqual(await pond.crash(), [{ queue: 'jobs', id, attempt: 1 }])
  assert.ok(signal.aborted)
  hold.resolve('too late')
  await pond.drain()
  assert.equal((await pond.job(id))?.state, 'running', 'the store does not know yet')

  const attempts: number[] = []
  queue.work(async (job) => {
    attempts.push(job.attempt)
    if (job.data === 'second') await pond.crash()
    return 'ok'
  })
  await pond.advance('29s')
  assert.deepEqual([attempts, lost], [[], []])
  await pond.advance('1s')
  assert.deepEqual([attempts, lost], [[2], [`${id} waiting`]])
  assert.equal(await pond.result(id), 'ok')

  const second = await queue.push('second', { attempts: 1 })
  await pond.advance('1m')
  assert.equal((await pond.job(second.id))?.state, 'dead', 'its handler crashed the only attempt')
  await pond.advance('1s')
  assert.deepEqual(await pond.workers(), [], 'they were not heard of for a minute')
})

test('a crash in a handler on the way leaves the lease where it was', async () => {
  await using pond = await open()
  const queue = pond.queue('jobs', { retry: { attempts: 1 }, lease: '30s' })
  queue.work(() => pond.crash())
  const { id } = await queue.push({}, { delay: '1h' })
  await pond.advance('60m')
  await pond.advance('29s')
  assert.equal((await pond.job(id))?.state, 'running')
  await pond.advance('1s')
  assert.equal((await pond.job(id))?.error?.code, 'LeaseLost')
})

test('drain follows the jobs that handlers push, and leaves what has no worker', async () => {
  await using pond = await open()
  const first = pond.queue<number>('first')
  const second = pond.queue<number>('second')
  pond.queue('idle').push({}).catch(assert.fail)
  first.work(async (job) => {
    if (job.data < 5) await first.push(job.data + 1)
    void second.push(job.data)
  })
  second.work(() => new Promise((resolve) => setImmediate(resolve)))
  await first.push(1)
  assert.deepEqual(await pond.drain(), {
    done: 10,
    failed: 0,
    dead: 0,
    waiting: 1,
    running: 0,
    scheduled: 0,
    blocked: 0,
  })
})

test('pushed tells of every job with its data and options', async () => {
  await using pond = await open()
  const queue = pond.queue<{ to: string; at?: Date }>('emails')
  queue.work(() => {})
  void queue.push({ to: 'a@example.org', at: START }, { key: 'a', priority: 7, delay: '1m' })
  void queue.push({ to: 'b@example.org' }, { key: 'a' })
  void queue.push({ to: 'c@example.org' }, { group: 'c', attempts: 2 })
  const [a, c, ...rest] = await pond.pushed<{ to: string }>('emails')
  assert.deepEqual(rest, [])
  assert.deepEqual(a?.data, { to: 'a@example.org', at: START.toISOString() })
  assert.deepEqual([a?.key, a?.priority, a?.delay, c?.group, c?.attempts], ['a', 7, 60_000, 'c', 2])
  await pond.advance('1d')
  assert.equal((await pond.pushed('emails')).length, 2)
  assert.deepEqual(await pond.pushed('other'), [])
})

test('what never comes to rest is NoRest, and names the jobs', async () => {
  await using pond = await open({ timeout: '50ms', patience: '10ms' })
  const stuck = pond.queue('stuck')
  stuck.work(never)
  const { id } = await stuck.push({})
  await assert.rejects(pond.drain(), (error: Error) => isMillpondError(error, 'NoRest') && error.message.includes(id))
  const endless = pond.queue('endless')
  const worker = endless.work(async () => void (await endless.push({})))
  await endless.push({})
  await assert.rejects(pond.advance('1s'), { code: 'NoRest' })
  await worker.close()
})

test('pushes that wait for room are stored as jobs end', async () => {
  await using pond = await open()
  const queue = pond.queue<number, number>('small', { capacity: 2, whenFull: 'wait', keep: { done: '1d' } })
  const pushes = Promise.all([1, 2, 3, 4, 5].map((n) => queue.push(n, { delay: '1h' })))
  queue.work((job) => job.data * 2, { concurrency: 1 })
  await pond.advance('1h')
  await pond.advance('1h')
  await pond.advance('1h')
  const ids = (await pushes).map(({ id }) => id)
  assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [2, 4, 6, 8, 10])
})

test('a batch handler gets what waits', async () => {
  await using pond = await open()
  const queue = pond.queue<number>('rows')
  const sizes: number[] = []
  queue.work((jobs) => void sizes.push(jobs.length), { batch: { max: 10 } })
  await queue.pushMany(
    Array.from({ length: 25 }, (_, index) => index),
    { delay: '1h' },
  )
  assert.equal((await pond.advance('1h')).done, 25)
  assert.deepEqual(sizes, [10, 10, 5])
})

test('a job that pushes the next one goes on for a month', async () => {
  await using pond = await open()
  const queue = pond.queue<number>('hourly')
  queue.work((job) => void queue.push(job.data + 1, { delay: '1h' }))
  await queue.push(1)
  assert.equal((await pond.advance('30d')).done, 30 * 24 + 1)
})

test('a day at a start each minute', async () => {
  await using pond = await open()
  const queue = pond.queue<number>('calls', { limits: { rate: { count: 1, per: '1m', burst: 1 } } })
  let started = 0
  queue.work(() => void started++)
  await queue.pushMany(Array.from({ length: 2 * 24 * 60 }, (_, index) => index))
  await pond.advance('1d')
  assert.equal(started, 24 * 60 + 1)
})

test('moved is told of each time, before anything happens there', async () => {
  const times: string[] = []
  await using pond = await open({ moved: (now) => times.push(now.toISOString().slice(11, 16)) })
  const queue = pond.queue('jobs')
  queue.work(() => void times.push('ran'))
  await queue.push({}, { delay: '1h' })
  await pond.advance('90m')
  assert.deepEqual(times, ['01:00', 'ran', '01:30'])
})

test('workers are still known after a long time', async () => {
  await using pond = await open()
  const worker = pond.queue('jobs').work(() => {})
  await pond.queue('jobs').push({})
  await pond.advance('7d')
  assert.deepEqual(
    (await pond.workers()).map(({ id }) => id),
    [worker.id],
  )
})

test('bad options are refused', async () => {
  await assert.rejects(openTestPond({ patience: -1 }), { code: 'InvalidOption' })
  await assert.rejects(openTestPond({ now: new Date(Number.NaN) }), { code: 'InvalidOption' })
  const pond = await open()
  await assert.rejects(pond.advance('a week'), { code: 'InvalidOption' })
  await assert.rejects(pond.pushed('no spaces'), { code: 'InvalidName' })
  await pond.close()
  await assert.rejects(pond.advance('1s'), { code: 'Closed' })
})

test('drain goes through a graph, and pushed tells who waits for whom', async () => {
  await using pond = await open()
  // Parents that are kept no longer are not shown.
  const parts = pond.queue<number, number>('parts', { keep: { done: '2h' } })
  const whole = pond.queue<string, number>('whole')
  parts.work(({ data }) => data)
  whole.work(async (_job, ctx) => (await ctx.parents<number>()).reduce((sum, { result = 0 }) => sum + result, 0))
  const later = await parts.push(0, { delay: '1h' })
  const { jobs, callback } = await parts.pushMany([1, 2, 3], { callback: [whole, 'sum', { after: [later.id] }] })
  assert.equal((await pond.drain()).blocked, 1)
  assert.equal((await parts.stats()).counts.done, 3)
  assert.equal((await pond.drain({ within: '1h' })).blocked, 0)
  assert.equal(await pond.result(callback.id), 6)
  const [pushed] = await pond.pushed('whole')
  assert.deepEqual(pushed?.after, [later.id, ...jobs.map(({ id }) => id)])
})
