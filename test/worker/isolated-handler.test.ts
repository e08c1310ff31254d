/** A handler in a process of its own has what one in the worker's process has, and may answer in the same ways. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { Millpond } from '../../src/index.ts'
import { atWork, inState, refused, withoutLimits } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { isolated, moduleOf } from './fixture.ts'
import type { Told } from './modules/told.ts'

test('data and results keep their types', { timeout: 60_000 }, async (t) => {
  const { run } = await isolated(t)
  const bytes = new Uint8Array([0, 255])
  for (const value of ['text', 0, null, { deep: [1, { er: true }] }, 2n ** 62n, Number.NaN, { bytes }, bytes]) {
    assert.deepEqual(await run({ do: 'echo', value }), value)
  }
  assert.equal(await run({ do: 'nothing' }), undefined)
})

test('the job is as in the worker’s process', { timeout: 60_000 }, async (t) => {
  const { pond, queue } = await isolated(t)
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const { id } = await queue.push({ do: 'facts' }, { priority: 7, group: 'g', key: 'k', trace, attempts: 4 })
  const facts = { id, queue: 'q', priority: 7, attempt: 1, attempts: 4, key: 'k', group: 'g', trace }
  const result = await pond.result(id)
  const { fence, pushedAt } = (await pond.job(id)) ?? {}
  assert.deepEqual(result, { ...facts, fence })
  const timed = await queue.push({ do: 'times' })
  const [pushed, due] = (await pond.result(timed.id)) as number[]
  assert.equal(pushed, (await pond.job(timed.id))?.pushedAt.getTime())
  assert.ok(due !== undefined && pushedAt !== undefined && due >= pushedAt.getTime())
})

test('what is thrown, and what is no result, fails the job as always', { timeout: 60_000 }, async (t) => {
  const { failure } = await isolated(t)
  const thrown = await failure({ do: 'error' })
  assert.deepEqual([thrown.code, thrown.name, thrown.message], ['HandlerFailed', 'RangeError', 'out of range'])
  assert.match(thrown.stack ?? '', /RangeError: out of range\n.*told\.ts/)
  const own = await failure({ do: 'ownError' })
  assert.deepEqual([own.code, own.message], ['TimedOut', 'a call in the handler'])
  const non = await failure({ do: 'nonError' })
  assert.deepEqual([non.name, non.message], ['NonError', 'threw a non-error: {"not":"an error"}'])
  assert.equal((await failure({ do: 'unencodable' })).code, 'PayloadNotEncodable')
  assert.equal((await failure({ do: 'tooLarge' })).code, 'PayloadTooLarge')
  assert.equal((await failure({ do: 'badProgress' })).code, 'PayloadNotEncodable')
})

test('the error of a result that is awaited, and of events, is the handler’s', { timeout: 60_000 }, async (t) => {
  const { pond, run } = await isolated(t)
  const { promise, resolve } = Promise.withResolvers<unknown>()
  pond.on('dead', ({ error }) => resolve(error))
  const failed = await refused(run({ do: 'error' }), 'JobFailed', /out of range/)
  assert.equal((failed.cause as Error).message, 'out of range')
  assert.equal(((await promise) as Error).message, 'out of range')
})

test('outcomes', { timeout: 60_000 }, async (t) => {
  const { pond, queue, failure } = await isolated(t)
  const again = await queue.push({ do: 'retry' }, { attempts: 2 })
  const { error, attempt } = await inState(pond, again.id, 'scheduled')
  assert.deepEqual([error?.code, error?.message, attempt], ['HandlerFailed', 'later', 1])
  assert.deepEqual((await failure({ do: 'giveUp' })).message, 'hopeless')
  const { code, message } = await failure({ do: 'outcome' })
  assert.deepEqual([code, message], ['GaveUp', 'from deep inside'])
  const limited = Promise.withResolvers<number>()
  pond.on('rateLimited', ({ pause }) => limited.resolve(pause))
  const { id } = await queue.push({ do: 'rateLimited' })
  assert.equal(await limited.promise, 3_600_000)
  const waiting = await inState(pond, id, 'waiting')
  assert.equal(waiting.attempt, 0)
})

test('rateLimited is refused on a store without rates', { timeout: 60_000 }, () =>
  withoutLimits(async (pond) => {
    pond.on('dead', () => {})
    const queue = pond.queue<Told>('q', { retry: { attempts: 1 } })
    queue.work(moduleOf('told'), { isolate: {}, concurrency: 1 })
    const { id } = await queue.push({ do: 'rateLimited' })
    const { error } = await inState(pond, id, 'dead')
    assert.deepEqual([error?.code, /rates/.test(error?.message ?? '')], ['NotSupported', true])
  }),
)

test('ctx.tx and ctx.replica are refused, in the handler and as options', { timeout: 60_000 }, async (t) => {
  const { failure, queue } = await isolated(t)
  for (const what of ['tx', 'replica'] as const) {
    const { code, message } = await failure({ do: what })
    assert.equal(code, 'NotSupported')
    assert.match(message, new RegExp(`ctx\\.${what} does not reach an isolated handler: .* client of your own`))
  }
  for (const option of [{ transaction: true }, { replica: 'postgres://127.0.0.1:1/x' }]) {
    const given = { isolate: {}, ...option }
    await refused(() => queue.work(moduleOf('told'), given), 'NotSupported', /does not go with isolate; use a client/)
  }
})

describe('an attempt that is over before its handler', () => {
  test('cancelled: the signal says so, and a handler that obeys keeps its process', { timeout: 60_000 }, async (t) => {
    const { pond, queue, run, worker } = await isolated(t)
    const file = join(scratch(t), 'told')
    const pid = await run({ do: 'pid' })
    const { id } = await queue.push({ do: 'obey', value: file })
    await atWork(worker)
    await pond.cancel(id)
    await inState(pond, id, 'cancelled')
    assert.equal(await run({ do: 'pid' }), pid)
    assert.equal(readFileSync(file, 'utf8'), 'JobCancelled')
  })

  for (const action of ['wait', 'block', 'spin'] as const) {
    test(`timed out: one that does not obey, here ${action}, loses its process`, { timeout: 60_000 }, async (t) => {
      const { pond, queue, run } = await isolated(t)
      const pid = await run({ do: 'pid' })
      const { id } = await queue.push({ do: action }, { timeout: 100 })
      const { error } = await inState(pond, id, 'dead')
      assert.equal(error?.code, 'TimedOut')
      assert.notEqual(await run({ do: 'pid' }), pid)
    })
  }
})

test('progress is seen while the handler runs, though it holds its event loop up', { timeout: 60_000 }, async (t) => {
  const { pond, queue } = await isolated(t)
  const reports: [Told, unknown][] = [
    [{ do: 'progress', value: { of: [1n, 2n] } }, { of: [1n, 2n] }],
    [{ do: 'progressAndSpin' }, 'before the loop'],
  ]
  for (const [told, report] of reports) {
    const { id } = await queue.push(told)
    await until(async () => (await pond.job(id))?.progress !== undefined, 'the report to be seen')
    assert.deepEqual((await pond.job(id))?.progress, report)
    await pond.cancel(id)
    await inState(pond, id, 'cancelled')
  }
})

test('lines of a log come along, cut as in the worker’s process, and those of a loop at once', {
  timeout: 60_000,
}, async (t) => {
  const { pond, queue } = await isolated(t)
  const { id } = await queue.push({ do: 'logs', value: 7 })
  const { log } = await inState(pond, id, 'done')
  assert.deepEqual(
    log.map(({ attempt, message, fields, cut }) => ({ attempt, length: message.length, fields, cut })),
    [
      { attempt: 1, length: 5, fields: { value: 7, error: 'RangeError: far' }, cut: false },
      { attempt: 1, length: 2001, fields: undefined, cut: true },
    ],
  )
  const spins = await queue.push({ do: 'logAndSpin' })
  await until(async () => (await pond.job(spins.id))?.log.length === 1, 'the line to be seen')
  await pond.cancel(spins.id)
  await inState(pond, spins.id, 'cancelled')
})

test('the schema runs in the worker’s process; what it puts out must be plain', { timeout: 60_000 }, async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  pond.on('dead', () => {})
  const told = z.object({ do: z.string(), value: z.string() })
  const plain = pond.queue('plain', { schema: told.transform(({ value }) => ({ do: 'echo', value: `${value}!` })) })
  plain.work(moduleOf('told'), { isolate: {}, concurrency: 1 })
  const { id } = await plain.push({ do: 'echo', value: 'a' })
  assert.equal(await pond.result(id), 'a!')
  const options = { schema: told.transform(() => ({ do: () => 'a function' })), retry: { attempts: 1 } }
  const other = pond.queue('other', options)
  other.work(moduleOf('told'), { isolate: {}, concurrency: 1 })
  const refusedJob = await other.push({ do: 'echo', value: 'a' })
  const { error } = await inState(pond, refusedJob.id, 'dead')
  assert.equal(error?.code, 'PayloadNotEncodable')
  assert.match(error?.message ?? '', /cannot be sent to the process of its handler: .*plain data, Dates, Maps or bytes/)
})

test('a handler is told of the parents of its job', { timeout: 60_000 }, async (t) => {
  const { pond, queue, run } = await isolated(t)
  assert.deepEqual(await run({ do: 'parents' }), [])
  const when = new Uint8Array([1, 2])
  const [done, failed] = [
    await queue.push({ do: 'echo', value: when }),
    await queue.push({ do: 'spin' }, { delay: '1h' }),
  ]
  const { id } = await queue.push({ do: 'parents' }, { after: [done.id, failed.id], onDead: 'run' })
  await inState(pond, done.id, 'done')
  await pond.cancel(failed.id)
  assert.deepEqual(await pond.result(id), [
    { id: done.id, queue: 'q', state: 'done', result: when, error: null },
    { id: failed.id, queue: 'q', state: 'cancelled', error: null },
  ])
})

test('options that do not fit are refused, with what to do', { timeout: 60_000 }, async (t) => {
  const { queue } = await isolated(t)
  const module = moduleOf('told')
  for (const [isolate, message] of [
    [{ memory: '1MB' }, /isolate\.memory must be from 96MB to 1024GB/],
    [{ memory: 'much' }, /isolate\.memory must be .* such as '256MB'/],
    [{ cpu: '5ms' }, /isolate\.cpu must be/],
    [{ ram: 1 }, /unknown option "ram"; known are memory, cpu/],
    [true, /isolate/],
  ] as const) {
    await refused(() => queue.work(module, { isolate: isolate as object }), 'InvalidOption', message)
  }
  await refused(
    () => queue.work(module, { isolate: {}, concurrency: 1001 }),
    'InvalidOption',
    /at most 1000 with isolate/,
  )
  const together = /the URL of a module and the option isolate go together, as in work\(new URL/
  const anyUrl = module as unknown as () => void
  await refused(() => queue.work(anyUrl), 'InvalidOption', together)
  const handler = (() => {}) as unknown as URL
  await refused(() => queue.work(handler, { isolate: {} }), 'InvalidOption', together)
  const remote = new URL('https://user:secret@example.org/report.js')
  const { message } = await refused(() => queue.work(remote, { isolate: {} }), 'InvalidOption', /got https:$/)
  assert.doesNotMatch(message, /secret/)
})
