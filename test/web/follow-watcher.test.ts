/** What wakes those who follow, and what they are spared; and how values look in JSON. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JobInfo, Millpond, MillpondError, type PondEvents } from '../../src/index.ts'
import { jsonText } from '../../src/web/answer.ts'
import { Watcher } from '../../src/web/watcher.ts'
import { until } from '../support/until.ts'

/** A pond that only says what it is told to, and a watch on one job of it. */
async function watched() {
  const pond = await Millpond.open('memory:')
  const { id } = await pond.queue('q').push(1)
  const info = await pond.job(id)
  await pond.close()
  assert.ok(info)
  const listeners = new Map<string, (event: { id: string }) => void>()
  const seen: (JobInfo | undefined)[] = []
  const failures: unknown[] = []
  const state = { looks: 0, answer: async (): Promise<JobInfo | undefined> => info }
  const settled = Promise.withResolvers<unknown>()
  const watcher = new Watcher({
    job: () => {
      state.looks++
      return state.answer()
    },
    result: () => settled.promise,
    on: <Name extends keyof PondEvents>(name: Name, listener: (...args: PondEvents[Name]) => void) => {
      listeners.set(name, listener as (event: { id: string }) => void)
      return () => listeners.delete(name)
    },
  })
  const follower = {
    seen: (job: JobInfo | undefined) => seen.push(job),
    failed: (error: unknown) => failures.push(error),
  }
  const leave = watcher.follow(id, follower)
  await until(() => seen.length === 1)
  return { id, info, state, seen, failures, listeners, settled, watcher, leave, follower }
}

test('each event of the job is a look at once; those of other jobs are not', async () => {
  const { id, state, listeners, leave } = await watched()
  assert.deepEqual([...listeners.keys()].sort(), ['cancelled', 'completed', 'dead', 'failed', 'lost', 'started'])
  for (const tell of listeners.values()) {
    await new Promise(setImmediate)
    const before = state.looks
    tell({ id: 'another' })
    assert.equal(state.looks, before)
    tell({ id })
    assert.equal(state.looks, before + 1)
  }
  leave()
  assert.equal(listeners.size, 0)
})

test('what happens during a look is looked at again', async () => {
  const { id, info, state, seen, listeners, leave } = await watched()
  await new Promise(setImmediate)
  const slow = Promise.withResolvers<JobInfo>()
  state.answer = () => slow.promise
  listeners.get('started')?.({ id })
  const during = state.looks
  listeners.get('failed')?.({ id })
  listeners.get('dead')?.({ id })
  assert.equal(state.looks, during)
  state.answer = async () => ({ ...info, state: 'dead' })
  slow.resolve(info)
  await until(() => seen.at(-1)?.state === 'dead')
  assert.equal(state.looks, during + 1)
  leave()
})

test('that the result is there, or never will be, is a look', async () => {
  for (const settle of ['resolve', 'reject'] as const) {
    const { state, settled, leave } = await watched()
    const before = state.looks
    settled[settle]('over')
    await new Promise(setImmediate)
    assert.equal(state.looks, before + 1)
    leave()
  }
})

test('a store that is away for now is asked again; any other failure is told', async () => {
  const { id, state, seen, failures, listeners, leave } = await watched()
  state.answer = () => Promise.reject(new MillpondError('StoreUnavailable', 'away'))
  listeners.get('started')?.({ id })
  await new Promise(setImmediate)
  assert.deepEqual([seen.length, failures.length], [1, 0])
  const error = new TypeError('broken')
  state.answer = () => Promise.reject(error)
  listeners.get('started')?.({ id })
  await new Promise(setImmediate)
  assert.deepEqual(failures, [error])
  leave()
})

test('many who come to one job one after the other are told once each, and of changes', async () => {
  const { id, info, state, seen, listeners, watcher, leave } = await watched()
  const crowd = 500
  let told = 0
  const leaves: (() => void)[] = []
  for (let come = 1; come <= crowd; come++) {
    let own = 0
    const toldOnce = () => {
      own++
      told++
    }
    leaves.push(watcher.follow(id, { seen: toldOnce, failed: assert.fail }))
    while (own === 0) await new Promise(setImmediate)
  }
  assert.deepEqual([told, seen.length], [crowd, 1])
  state.answer = async () => ({ ...info, progress: 0.5 })
  listeners.get('started')?.({ id })
  await until(() => seen.length === 2)
  assert.equal(told, 2 * crowd)
  for (const go of [leave, ...leaves]) go()
  assert.equal(listeners.size, 0)
})

test('who has left hears no more, nor hinders those who stay', async () => {
  const { id, info, state, seen, listeners, watcher, leave, follower } = await watched()
  const others: unknown[] = []
  const leaveToo = watcher.follow(id, { ...follower, seen: (job) => others.push(job) })
  await until(() => others.length === 1)
  leave()
  leave()
  const before = seen.length
  state.answer = async () => ({ ...info, attempt: 1 })
  listeners.get('started')?.({ id })
  await until(() => others.length === 2)
  assert.equal(seen.length, before)
  leaveToo()
  assert.equal(listeners.size, 0)
})

test('JSON of what JSON does not have', () => {
  const bytes = Buffer.from('hé')
  assert.equal(
    jsonText({ bytes, view: new Uint8Array(bytes), nested: [bytes] }),
    '{"bytes":"aMOp","view":"aMOp","nested":["aMOp"]}',
  )
  assert.equal(
    jsonText([1n, -(2n ** 53n) + 1n, 2n ** 53n, -(2n ** 63n)]),
    '[1,-9007199254740991,"9007199254740992","-9223372036854775808"]',
  )
  assert.equal(jsonText(new Date(0)), '"1970-01-01T00:00:00.000Z"')
})
