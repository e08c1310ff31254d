/** Graphs that cannot be: refused before the store is asked. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { z } from 'zod'
import { type ErrorCode, Millpond } from '../../src/index.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import { after } from '../support/cleaning.ts'
import { refused } from './suite.ts'

/** What a caller without types may pass. */
function anything<T>(value: unknown): T {
  return value as T
}

const ID = newId()
const BAD_OPTIONS: [title: string, options: unknown, code: ErrorCode, message: RegExp][] = [
  ['one id without a list', { after: ID }, 'InvalidOption', /after must be an array of ids, as in after: \[id\]/],
  ['what is no id', { after: ['first'] }, 'InvalidName', /UUID/],
  ['a place in a push of one job', { after: [0] }, 'InvalidName', /UUID/],
  ['too many parents', { after: Array(10_001).fill(ID) }, 'InvalidOption', /at most 10000 ids; for more/],
  ['an unknown end', { after: [ID], onDead: 'ignore' }, 'InvalidOption', /'cancel' or 'run'/],
  ['an end without parents', { onDead: 'run' }, 'InvalidOption', /give after/],
  ['the whole of a part is no id', { partOf: 'x' }, 'InvalidName', /UUID/],
  [
    'a replacement with parents',
    { key: 'k', once: { replace: true }, after: [ID] },
    'InvalidOption',
    /after or once.replace, not both/,
  ],
  ['a replacement that is a part', { key: 'k', once: { replace: true }, partOf: ID }, 'InvalidOption', /partOf or/],
  ['a follower with parents', { key: 'k', once: { whenRunning: 'follow' }, after: [ID] }, 'InvalidOption', /not both/],
]

async function open(t: Parameters<typeof after>[0], options = {}): Promise<Millpond> {
  const pond = await Millpond.open('memory:', options)
  after(t, () => pond.close({ timeout: 100 }))
  return pond
}

test('options of a push', async (t) => {
  const pond = await open(t)
  const queue = pond.queue('q')
  for (const [title, options, code, message] of BAD_OPTIONS) {
    t.diagnostic(title)
    await refused(queue.push(1, anything(options)), code, message)
    await refused(queue.pushMany([1], { each: () => anything(options) }), code, message)
  }
  for (const [, options, code] of BAD_OPTIONS.filter(([title]) => title !== 'a place in a push of one job')) {
    await refused(pond.pushAll([[queue, 1, anything(options)]]), code)
  }
  assert.equal((await queue.stats()).totals.pushed, 0)
})

test('lists of pushAll', async (t) => {
  const [pond, other] = [await open(t, { maxPayload: 16 * 1024 ** 2 }), await open(t)]
  const queue = pond.queue('q')
  const number = pond.queue('n', { schema: z.number() })
  const later = pond.queue('l', { schema: z.number().refine(async (n) => n > 0) })
  const all = (jobs: unknown, options?: unknown) => pond.pushAll(anything<[]>(jobs), anything(options))
  for (const [jobs, message] of [
    [{}, /takes an array of jobs/],
    [[queue], /job 0 must be an array of a queue, data and options/],
    [[[queue]], /job 0 must be an array/],
    [[[queue, 1, {}, 2]], /job 0 must be an array/],
    [[['q', 1]], /the queue must be one of this pond/],
    [[[other.queue('q'), 1]], /a queue of another one/],
    [[[queue, 1, []]], /job 0: options must be an object/],
    [[[queue, 1, { tx: 1 }]], /tx is an option of pushAll/],
    [[[queue, 1, { after: ID }]], /after must be an array/],
    [[[queue, 1, { after: [0.5] }]], /the place 0\.5/],
    [[[queue, 1, { after: [-1] }]], /the place -1/],
    [[[queue, 1, { before: [0] }]], /unknown option "before"/],
  ] as const) {
    await refused(all(jobs), 'InvalidOption', message)
  }
  await refused(all([], { atOnce: true }), 'InvalidOption', /"atOnce"/)
  await refused(
    all([
      [queue, 1],
      [number, 'one'],
    ]),
    'SchemaMismatch',
  )
  await refused(
    all([
      [later, -1],
      [queue, 1],
    ]),
    'SchemaMismatch',
  )
  const large = randomBytes(4 * 1024 ** 2)
  await refused(all(Array(5).fill([queue, large])), 'PayloadTooLarge', /16777216 bytes together.*partOf/)
  await refused(all(Array(5001).fill([queue, 1])), 'PayloadTooLarge', /at most 5000; got 5001.*after/)
  assert.equal((await queue.stats()).totals.pushed, 0)
})

test('callbacks of pushMany', async (t) => {
  const pond = await open(t)
  const [queue, other] = [pond.queue<number>('q'), (await open(t)).queue('q')]
  const many = (callback: unknown, jobs = [1]) =>
    queue.pushMany(jobs, { callback: anything<[typeof queue, number]>(callback) })
  for (const callback of [null, 'q', [], [queue], [queue, 1, {}, 2]]) {
    await refused(many(callback), 'InvalidOption', /callback must be an array of a queue, data and options/)
  }
  await refused(many([other, 1]), 'InvalidOption', /the callback of pushMany to q: the queue must be one of this pond/)
  await refused(many([queue, 1, { onDead: 'stop' }]), 'InvalidOption', /'cancel' or 'run'/)
  await refused(many([queue, 1], Array(5000).fill(1)), 'PayloadTooLarge', /at most 5000; got 5001/)
  assert.equal((await queue.pushMany([1], { callback: undefined })).length, 1)
  const { jobs, callback } = await queue.pushMany(Array(4999).fill(1), { callback: [queue, 2] })
  assert.equal(jobs.length, 4999)
  assert.equal((await pond.job(callback.id))?.waitsFor, 4999)
  const graph = await pond.graph(callback.id, { limit: 100_000 })
  assert.deepEqual([graph?.nodes.length, graph?.counts.waiting, graph?.left, graph?.more], [5000, 4999, 5000, false])
})

test('a child is shown the results of sealed parents', async (t) => {
  const pond = await open(t, { seal: { keys: [{ id: 'k1', key: randomBytes(32) }] } })
  const queue = pond.queue<string, unknown>('q')
  queue.work(async ({ data }, ctx) =>
    data === 'last' ? (await ctx.parents()).map(({ result, error }) => [result, error]) : data,
  )
  const { callback } = await queue.pushMany(['a', 'b'], { callback: [queue, 'last'] })
  assert.deepEqual(await pond.result(callback.id, { timeout: '20s' }), [
    ['a', null],
    ['b', null],
  ])
  const dead = await queue.push('x', { delay: '1h' })
  const child = await queue.push('y', { after: [dead.id] })
  await pond.cancel(dead.id)
  await refused(pond.result(child.id), 'ParentFailed', /which it waited for, is cancelled/)
})
