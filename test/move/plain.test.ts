/** Stores that lack what others have: as a source they are claimed from, as a target they take what they can. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import type { Store } from '../../src/store.ts'
import { around } from '../../src/stores/around.ts'
import { plain, stores } from '../conformance/stores.ts'
import { newJobs, recordOf } from '../support/jobs.ts'
import { everyRecord } from './records.ts'

const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)
const BODY = '{"big":12345678901234567890}'

async function waitingIn({ operations }: Store, queue: string) {
  return (await operations.list({ queue, state: 'waiting', limit: 100 })).jobs
}

test('a source without lists is claimed from, and completed when the target has the job', async () => {
  const source = await plain.open()
  const target = await memory.open()
  try {
    const jobs = newJobs(30, { attempts: 5, timeout: 1000, data: { encoding: 'json', body: BODY } })
    await source.store.operations.push({ jobs })
    const report = await move(source.store, target.store)
    assert.deepEqual([report.moved, report.left], [30, 0])
    const moved = await waitingIn(target.store, 'q')
    assert.deepEqual(
      moved.map(({ id, attempt, attempts, timeout, data }) => [id, attempt, attempts, timeout, data.body]),
      jobs.map(({ id }) => [id, 0, 5, 1000, BODY]),
    )
    const [stats] = await source.store.operations.stats({ queue: 'q' })
    assert.deepEqual([stats?.counts.waiting, stats?.counts.running], [0, 0])
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('headers of foreign messages go into the data, or stay behind', async () => {
  const bodies = [
    { encoding: 'json', body: BODY },
    { encoding: 'json', body: 'no json' },
    { encoding: 'bytes', body: Uint8Array.of(1, 2) },
  ] as const
  for (const headers of [true, false]) {
    const source = await plain.open()
    const target = await memory.open()
    try {
      for (const data of bodies) await source.store.operations.push({ jobs: newJobs(1, { data }) })
      const { claim } = source.store.operations
      const foreign: typeof claim = async (input) => {
        const claimed = await claim(input)
        return { ...claimed, jobs: claimed.jobs.map((job) => ({ ...job, headers: { tenant: 'a' } })) }
      }
      await move({ ...source.store, operations: { ...source.store.operations, claim: foreign } }, target.store, {
        headers,
      })
      const data = (await waitingIn(target.store, 'q')).map((record) => record.data)
      if (!headers) assert.deepEqual(data, bodies)
      else {
        const start = '{"headers":{"tenant":"a"},"data":'
        assert.deepEqual([data[0]?.body, data[1]?.body], [`${start}${BODY}}`, `${start}"no json"}`])
        assert.equal(data[2]?.encoding, 'msgpack')
      }
    } finally {
      await source.dispose()
      await target.dispose()
    }
  }
})

test('a target that cannot restore takes live jobs as new ones; what it cannot take stays at the source', async () => {
  const source = await memory.open()
  const target = await plain.open()
  try {
    await source.store.operations.restore({ records: everyRecord('q', Date.now()) })
    const report = await move(source.store, target.store)
    const [queue] = report.queues
    assert.ok(queue && report.moved > 0)
    assert.deepEqual([queue.moved.dead, queue.moved.done, queue.moved.waiting], [0, 0, report.moved])
    assert.deepEqual(queue.left, { NotSupported: 11 - report.moved })
    assert.equal(report.remaining, 11 - report.moved)
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('settings that the target cannot keep are refused before anything is moved', async () => {
  const source = await memory.open()
  const target = await plain.open()
  try {
    await source.store.operations.configure({ queue: 'q', running: 3 })
    await source.store.operations.push({ jobs: newJobs(1) })
    await assert.rejects(move(source.store, target.store), { code: 'NotSupported', message: /running/ })
    assert.equal((await waitingIn(source.store, 'q')).length, 1)
    assert.equal((await move(source.store, target.store, { settings: false })).moved, 1)
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('what the target has set of its own stays, and a pause goes over', async () => {
  const source = await memory.open()
  const target = await memory.open()
  try {
    await source.store.operations.configure({ queue: 'q', attempts: 3, timeout: 5000, paused: true })
    await target.store.operations.configure({ queue: 'q', attempts: 7 })
    await move(source.store, target.store)
    const settings = await target.store.operations.settings({ queue: 'q' })
    assert.deepEqual(settings?.code, { attempts: 7, timeout: 5000 })
    assert.equal(settings?.values.paused, true)
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('a job whose key another live job at the target has stays, and so does one that the target refuses', async () => {
  let now = Date.now()
  const source = await memory.open({ clock: () => now })
  const target = await memory.open()
  try {
    const [first, bad, last] = [recordOf({ key: 'k' }), recordOf(), recordOf()]
    await source.store.operations.restore({ records: [first, bad, last] })
    await target.store.operations.push({ jobs: newJobs(1, { key: 'k' }) })
    const { MillpondError } = await import('../../src/index.ts')
    const picky = around(target.store, (name, input, next) => {
      const refuses = name === 'restore' && JSON.stringify(input).includes(bad.id)
      return refuses ? Promise.reject(new MillpondError('PayloadTooLarge', 'too large')) : next(input)
    })
    const report = await move(source.store, picky)
    assert.deepEqual(report.queues[0]?.left, { KeyTaken: 1, PayloadTooLarge: 1 })
    assert.deepEqual([report.moved, report.left, report.remaining], [1, 2, 2])
    // A minute later they wait as before.
    now += 60_000
    await source.store.operations.sweep({ limit: 10 })
    assert.deepEqual(
      (await waitingIn(source.store, 'q')).map(({ id }) => id),
      [first.id, bad.id],
    )
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('what fails for the moment is repeated, on both sides', async () => {
  const source = await memory.open()
  const target = await memory.open()
  try {
    await source.store.operations.push({ jobs: newJobs(2500) })
    const { MillpondError } = await import('../../src/index.ts')
    let calls = 0
    // Every third call fails; every sixth only after it has taken effect.
    const flaky = async <T>(next: () => Promise<T>): Promise<T> => {
      const call = ++calls
      if (call % 3 !== 0) return next()
      if (call % 2 === 0) await next()
      throw new MillpondError('StoreUnavailable', 'away')
    }
    const away = around(source.store, (_, input, next) => flaky(() => next(input)))
    const deaf = around(target.store, (name, input, next) =>
      name === 'restore' ? flaky(() => next(input)) : next(input),
    )
    const troubles: string[] = []
    const options = { onTrouble: ({ code }: { code: string }) => void troubles.push(code) }
    const report = await move(away, deaf, options)
    assert.equal(report.remaining, 0)
    assert.ok(troubles.length > 0 && troubles.every((code) => code === 'StoreUnavailable'))
    const [stats] = await target.store.operations.stats({ queue: 'q' })
    assert.equal(stats?.counts.waiting, 2500)
  } finally {
    await source.dispose()
    await target.dispose()
  }
})

test('bad calls', async () => {
  const { store, dispose } = await memory.open()
  const bad: [unknown, unknown, object?][] = [
    ['mysql://x', store],
    ['nothing', store],
    [undefined, store],
    [store, store],
    [store, 'memory:', { follows: true }],
    [store, 'memory:', { queues: [] }],
    [store, 'memory:', { queues: 'q' }],
    [store, 'memory:', { queues: ['bad name'] }],
    [store, 'memory:', { signal: 1 }],
    ['pgboss+postgres://x/y?schema=a;b', store],
    ['bullmq+redis://x/notanumber', store],
  ]
  for (const [source, target, options] of bad) {
    const failure = await move(source as string, target as string, options).catch((error: unknown) => error)
    const code: unknown = Reflect.get(Object(failure), 'code')
    assert.ok(
      ['InvalidOption', 'InvalidName', 'UnknownScheme'].includes(String(code)),
      `${String(source)}: ${String(failure)}`,
    )
  }
  const stopped = AbortSignal.abort(new Error('stopped'))
  await assert.rejects(move(store, 'memory:', { signal: stopped }), /stopped/)
  await dispose()
})
