/** A handler called without a pond ends as a worker would end it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { isMillpondError } from '../../src/index.ts'
import { runHandler } from '../../src/testing/index.ts'

test('a result and progress, as they are stored', async () => {
  const at = new Date(0)
  const report = await runHandler(
    (job, ctx) => {
      ctx.progress({ step: 1 })
      ctx.progress({ step: 2 })
      return { data: job.data, at }
    },
    { when: at },
  )
  assert.deepEqual(report, {
    outcome: 'done',
    result: { data: { when: at.toISOString() }, at: at.toISOString() },
    error: undefined,
    delay: undefined,
    progress: [{ step: 1 }, { step: 2 }],
    log: [],
    steps: {},
    waits: [],
  })
})

test('the job is what the options say', async () => {
  const options = { queue: 'emails', attempt: 3, priority: 9, key: 'k', group: 'g', pushedAt: new Date(5) }
  const { result } = await runHandler(
    ({ queue, attempt, attempts, priority, key, group, pushedAt }) => {
      return { queue, attempt, attempts, priority, key, group, pushedAt }
    },
    null,
    options,
  )
  assert.deepEqual(result, { ...options, attempts: 10, pushedAt: new Date(5).toISOString() })
})

test('failures: another attempt follows, or none', async () => {
  const fails = () => {
    throw new Error('no')
  }
  const retry = await runHandler(fails, {})
  assert.deepEqual([retry.outcome, retry.delay, retry.error?.message], ['retry', 'backoff', 'no'])
  assert.equal((await runHandler(fails, {}, { attempt: 10 })).outcome, 'dead')
  assert.equal((await runHandler(fails, {}, { attempt: 2, attempts: 2 })).outcome, 'dead')
  const later = await runHandler((_, ctx) => ctx.retry('1m', 'busy'), {})
  assert.deepEqual([later.outcome, later.delay, later.error?.message], ['retry', 60_000, 'busy'])
  assert.equal((await runHandler((_, ctx) => ctx.giveUp('gone'), {})).error?.code, 'GaveUp')
  const limited = await runHandler((_, ctx) => ctx.rateLimited('5s'), {})
  assert.deepEqual([limited.outcome, limited.delay], ['rateLimited', 5000])
  assert.equal((await runHandler(() => () => {}, {})).error?.code, 'PayloadNotEncodable')
})

test('a schema, a time limit and a signal', async () => {
  const schema = z.object({ n: z.coerce.number() })
  assert.deepEqual((await runHandler((job) => job.data, { n: '7' }, { schema })).result, { n: 7 })
  assert.equal((await runHandler((job) => job.data, {}, { schema })).error?.code, 'SchemaMismatch')
  const never = () => new Promise<never>(() => {})
  assert.equal((await runHandler(never, {}, { timeout: 1 })).error?.code, 'TimedOut')
  const controller = new AbortController()
  let seen: unknown
  const stopped = await runHandler(
    (_, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        seen = ctx.signal.reason
      })
      controller.abort()
      return never()
    },
    {},
    { signal: controller.signal },
  )
  assert.equal(stopped.outcome, 'stopped')
  assert.ok(isMillpondError(seen, 'JobCancelled'))
})

test('statements of ctx.tx and ctx.replica go to the functions given', async () => {
  const statements: string[] = []
  const tx = async (text: string) => {
    statements.push(text)
    return [{ n: 1 }]
  }
  const { outcome, result } = await runHandler(
    async (_, ctx) => [await ctx.tx('insert'), await ctx.replica('select'), ctx.replica.primary],
    {},
    { tx, replica: tx },
  )
  assert.deepEqual([outcome, result, statements], ['done', [[{ n: 1 }], [{ n: 1 }], false], ['insert', 'select']])
  const without = await runHandler((_, ctx) => ctx.tx('insert'), {})
  assert.equal(without.error?.code, 'InvalidOption')
})

test('ctx.parents shows the parents that are given', async () => {
  const [one, other] = ['01a214d3-a796-7d6a-953f-a86f16000bdf', '01a214d3-a796-7d6a-953f-a86f16000bde']
  const parents = [
    { id: one, queue: 'q', result: { at: new Date(0) } },
    { id: other, error: new RangeError('no') },
  ]
  const { result } = await runHandler(async (_job, ctx) => ctx.parents(), null, { parents })
  const [failed, done] = result ?? []
  assert.deepEqual(
    [failed?.id, failed?.queue, failed?.state, failed?.error?.name],
    [other, 'test', 'dead', 'RangeError'],
  )
  assert.deepEqual(done, { id: one, queue: 'q', state: 'done', result: { at: new Date(0).toISOString() }, error: null })
  const wrong = runHandler(() => {}, null, { parents: [{ state: 'running' as 'done' }] })
  await assert.rejects(wrong, (error) => isMillpondError(error, 'InvalidOption'))
})

test('bad options are refused', async () => {
  await assert.rejects(
    runHandler(() => {}, {}, { attempt: 3, attempts: 2 }),
    { code: 'InvalidOption' },
  )
  await assert.rejects(
    runHandler(() => {}, {}, { attempt: 0 }),
    { code: 'InvalidOption' },
  )
  await assert.rejects(
    runHandler(
      () => {},
      () => {},
    ),
    { code: 'PayloadNotEncodable' },
  )
})
