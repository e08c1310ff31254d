/** A handler for batches called without a pond: each job ends as a worker would end it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { type BatchContext, isMillpondError, type Job } from '../../src/index.ts'
import { type HandlerReport, runBatchHandler } from '../../src/testing/index.ts'

const [ONE, OTHER] = ['01a214d3-a796-7d6a-953f-a86f16000bdf', '01a214d3-a796-7d6a-953f-a86f16000bde']
const outcomes = (reports: readonly HandlerReport[]) => reports.map(({ outcome }) => outcome)

test('each job ends by its entry of the answer', async () => {
  const handler = (jobs: Job<number>[], ctx: BatchContext) =>
    jobs.map(({ data }) => {
      if (data === 1) return new RangeError('no')
      if (data === 2) return ctx.retry('1m', 'busy')
      if (data === 3) return ctx.giveUp('gone')
      return data === 4 ? ctx.rateLimited('5s') : { data, at: new Date(0) }
    })
  const reports = await runBatchHandler(handler, [0, 1, 2, 3, 4])
  assert.deepEqual(
    reports.map(({ outcome, delay, error }) => [outcome, delay, error?.message]),
    [
      ['done', undefined, undefined],
      ['retry', 'backoff', 'no'],
      ['retry', 60_000, 'busy'],
      ['dead', undefined, 'gone'],
      ['rateLimited', 5000, undefined],
    ],
  )
  assert.deepEqual(reports[0], {
    outcome: 'done',
    result: { data: 0, at: new Date(0).toISOString() },
    error: undefined,
    delay: undefined,
    progress: [],
    log: [],
    steps: {},
    waits: [],
  })
  assert.deepEqual(outcomes(await runBatchHandler(handler, [1, 0], { attempt: 10 })), ['dead', 'done'])
})

test('answers for all, by id, missing and wrong', async () => {
  assert.deepEqual(outcomes(await runBatchHandler(async () => {}, [1, 2])), ['done', 'done'])
  const mapped = await runBatchHandler((jobs) => new Map([[jobs[1]?.id ?? '', 'second']]), [1, 2])
  assert.deepEqual(
    mapped.map(({ result, error }) => result ?? error?.code),
    ['BatchMismatch', 'second'],
  )
  const thrown = await runBatchHandler(() => Promise.reject(new Error('all')), [1, 2])
  assert.deepEqual(
    thrown.map(({ error }) => error?.message),
    ['all', 'all'],
  )
  assert.deepEqual(outcomes(await runBatchHandler((_, ctx) => ctx.giveUp(), [1, 2])), ['dead', 'dead'])
})

test('jobs and their contexts are what the options say', async () => {
  const parents = [{ id: ONE, result: { n: 7 } }]
  const [first, second] = await runBatchHandler(
    (jobs: Job<string>[], ctx) =>
      Promise.all(
        jobs.map(async (job) => {
          const own = ctx.of(job)
          own.progress({ at: job.data })
          own.progress({ at: `${job.data} again` })
          own.log('seen', { key: job.key })
          const { queue, id, attempt, priority, group, key } = job
          return {
            queue,
            id,
            attempt,
            priority,
            group,
            key,
            parents: (await own.parents()).map(({ result }) => result),
          }
        }),
      ),
    ['a', 'b'],
    {
      ...{ queue: 'emails', priority: 9, group: 'g' },
      each: (data, index) => (index === 0 ? { id: OTHER.toUpperCase(), key: data, attempt: 3, parents } : undefined),
    },
  )
  const common = { queue: 'emails', priority: 9, group: 'g' }
  assert.deepEqual(first?.result, { ...common, id: OTHER, attempt: 3, key: 'a', parents: [{ n: 7 }] })
  assert.deepEqual(first?.progress, [{ at: 'a' }, { at: 'a again' }])
  assert.deepEqual(
    second?.log.map(({ message, fields }) => [message, fields]),
    [['seen', { key: null }]],
  )
  assert.deepEqual(second?.progress, [{ at: 'b' }, { at: 'b again' }])
  const [refused] = await runBatchHandler((_, ctx) => void ctx.of({ id: ONE }), [1])
  assert.equal(refused?.error?.code, 'InvalidOption')
})

test('a job that the schema refuses is not given to the handler', async () => {
  const schema = z.object({ n: z.coerce.number() })
  const seen: unknown[] = []
  const handler = (jobs: Job<{ n: unknown }>[]) => void seen.push(jobs.map(({ data }) => data))
  const reports = await runBatchHandler(handler, [{ n: 'x' }, { n: '7' }], { schema })
  assert.deepEqual([outcomes(reports), seen], [['retry', 'done'], [[{ n: 7 }]]])
  assert.equal(reports[0]?.error?.code, 'SchemaMismatch')
  const none = await runBatchHandler(handler, [{ n: 'x' }], { schema, attempts: 1 })
  assert.deepEqual([outcomes(none), seen.length], [['dead'], 1])
})

test('a job that is stopped or too slow ends alone; the signal of the batch is aborted after the last', async () => {
  const controller = new AbortController()
  const reasons: unknown[] = []
  const reports = await runBatchHandler(
    async (jobs: Job<string>[], ctx) => {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      for (const job of jobs) {
        const { signal } = ctx.of(job)
        signal.addEventListener('abort', () => reasons.push([job.data, signal.reason.code]))
      }
      controller.abort()
      return new Promise<never>(() => {})
    },
    ['stopped', 'slow'],
    { each: (data) => (data === 'slow' ? { timeout: 1 } : { signal: controller.signal }) },
  )
  assert.deepEqual(outcomes(reports), ['stopped', 'retry'])
  assert.equal(reports[1]?.error?.code, 'TimedOut')
  assert.deepEqual(reasons.slice(0, 2), [
    ['stopped', 'JobCancelled'],
    ['slow', 'TimedOut'],
  ])
  assert.ok(isMillpondError(reasons[2], 'TimedOut'))
  const all = await runBatchHandler(() => new Promise<never>(() => {}), [1, 2], { signal: AbortSignal.abort() })
  assert.deepEqual(outcomes(all), ['stopped', 'stopped'])
})

test('with a transaction, jobs that are done end together', async () => {
  const statements: string[] = []
  const tx = async (text: string) => {
    statements.push(text)
    return [{ n: 1 }]
  }
  const write = async (jobs: Job<number>[], ctx: BatchContext) => {
    await ctx.tx('insert')
    return jobs.map(({ data }) => {
      if (data === 1) return new Error('no')
      // Nothing can store a function.
      return data === 2 ? () => {} : data
    })
  }
  assert.deepEqual(outcomes(await runBatchHandler(write, [0, 1], { tx })), ['done', 'retry'])
  assert.deepEqual(outcomes(await runBatchHandler(write, [0, 1, 2], { tx })), ['released', 'released', 'dead'])
  assert.deepEqual(statements, ['insert', 'insert'])
  const [without] = await runBatchHandler(write, [0])
  assert.equal(without?.error?.code, 'InvalidOption')
})

test('bad options are refused', async () => {
  const refused = (data: number[], options: object) =>
    assert.rejects(
      runBatchHandler(() => {}, data, options),
      { code: 'InvalidOption' },
    )
  await refused([], {})
  await refused([1], { id: ONE })
  await refused([1], { replica: () => [] })
  await refused([1], { each: () => ({ queue: 'q' }) })
  await refused([1], { attempt: 3, attempts: 2 })
  await refused([1, 2], { each: () => ({ id: ONE }) })
  await assert.rejects(
    runBatchHandler(() => {}, 1 as never),
    { code: 'InvalidOption' },
  )
})
