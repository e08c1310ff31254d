/** Waiting for results where no bell ever rings: the look once a second must do. Timers are the test's. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Results } from '../../src/pond/results.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { JobRecord } from '../../src/values/jobs/records.ts'
import { coded, storeOf } from './suite.ts'

function recordOf(id: string, given: Partial<JobRecord> = {}): JobRecord {
  return {
    id,
    queue: 'q',
    state: 'running',
    priority: 4,
    attempt: 1,
    fence: 0,
    attempts: 10,
    key: null,
    group: null,
    cost: 1,
    timeout: null,
    trace: null,
    pushedAt: 0,
    dueAt: 0,
    startedAt: 0,
    finishedAt: null,
    worker: null,
    data: { encoding: 'json', body: 'null' },
    progress: null,
    result: null,
    error: null,
    ...given,
  }
}

const done = (id: string): JobRecord => recordOf(id, { state: 'done', result: { encoding: 'json', body: `"${id}"` } })

function looking() {
  const records = new Map<string, JobRecord>()
  const asked: string[][] = []
  const listening: boolean[] = []
  let failing: MillpondError | undefined
  const store = storeOf({
    outcomes: async ({ ids }) => {
      asked.push([...ids])
      if (failing !== undefined) throw failing
      return ids.map((id) => records.get(id) ?? null)
    },
  })
  const results = new Results(store, (waiting) => listening.push(waiting))
  return { records, asked, listening, results, fail: (error?: MillpondError) => (failing = error) }
}

describe('results', () => {
  test('those who wait for one job already are not walked for each who comes', async () => {
    const { results, records } = looking()
    let reads = 0
    const record = recordOf('a')
    records.set('a', {
      ...record,
      get queue() {
        reads++
        return 'q'
      },
    })
    const crowd = 500
    const all: Promise<unknown>[] = []
    for (let come = 0; come < crowd; come++) {
      all.push(results.wait('a', undefined, undefined))
      await setImmediate()
      await setImmediate()
    }
    assert.ok(reads >= crowd && reads <= 4 * crowd, String(reads))
    records.set('a', done('a'))
    results.finished('q', ['a'])
    assert.deepEqual(new Set(await Promise.all(all)), new Set(['a']))
  })

  test('all who begin to wait in one tick are looked up in one call', async () => {
    const { results, records, asked } = looking()
    for (const id of ['a', 'b', 'c']) records.set(id, done(id))
    const all = ['a', 'b', 'c', 'a'].map((id) => results.wait(id, undefined, undefined))
    assert.deepEqual(await Promise.all(all), ['a', 'b', 'c', 'a'])
    assert.deepEqual(asked, [['a', 'b', 'c']])
  })

  test('what a worker of this process has completed is not looked up again', async () => {
    const { results, records, asked } = looking()
    records.set('a', recordOf('a'))
    const all = [results.wait('a', undefined, undefined), results.wait('a', undefined, undefined)]
    await setImmediate()
    results.finished('q', ['a'])
    results.completed('a', { encoding: 'json', body: '"here"' })
    assert.deepEqual(await Promise.all(all), ['here', 'here'])
    await setImmediate()
    assert.deepEqual(asked, [['a']])
  })

  test('without any bell, the job is found within a second', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { results, records, asked, listening } = looking()
    records.set('a', recordOf('a'))
    const result = results.wait('a', undefined, undefined)
    await setImmediate()
    assert.deepEqual([asked, listening], [[['a']], [true]])
    records.set('a', done('a'))
    t.mock.timers.tick(999)
    await setImmediate()
    assert.equal(asked.length, 1)
    t.mock.timers.tick(1)
    assert.equal(await result, 'a')
    assert.deepEqual(listening, [true, false])
    t.mock.timers.tick(5000)
    assert.equal(asked.length, 2, 'nobody waits, nothing is asked')
  })

  test('all who wait are looked up in one call', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { results, records, asked } = looking()
    const ids = ['a', 'b', 'c']
    for (const id of ids) records.set(id, recordOf(id))
    const all = Promise.all(ids.map((id) => results.wait(id, undefined, undefined)))
    await setImmediate()
    asked.length = 0
    for (const id of ids) records.set(id, done(id))
    t.mock.timers.tick(1000)
    assert.deepEqual(await all, ids)
    assert.deepEqual(asked, [ids])
  })

  test('a bell with ids looks for these only, one without for the queue’s', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { results, records, asked } = looking()
    records.set('a', recordOf('a'))
    records.set('b', recordOf('b', { queue: 'other' }))
    const waits = [results.wait('a', undefined, undefined), results.wait('b', undefined, undefined)]
    await setImmediate()
    asked.length = 0
    results.finished('q', ['a', 'z'])
    await setImmediate()
    results.finished('q', ['z'])
    await setImmediate()
    results.finished('other', undefined)
    await setImmediate()
    results.finished('nobody', undefined)
    await setImmediate()
    assert.deepEqual(asked, [['a'], ['b']])
    records.set('a', done('a'))
    records.set('b', done('b'))
    results.finished('q', undefined)
    results.finished('other', ['b'])
    assert.deepEqual(await Promise.all(waits), ['a', 'b'])
  })

  test('a time-out tells the last error of the job, for which it is looked at once more before', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
    const { results, records, asked } = looking()
    const error = { code: 'HandlerFailed', name: 'RangeError', message: 'too far' } as const
    records.set('a', recordOf('a'))
    const result = results.wait('a', 500, undefined)
    const refused = assert.rejects(result, (thrown: Error) => {
      assert.ok(coded('ResultTimeout')(thrown) && thrown.cause instanceof Error)
      assert.deepEqual([thrown.cause.name, thrown.cause.message], ['RangeError', 'too far'])
      return true
    })
    await setImmediate()
    records.set('a', recordOf('a', { state: 'scheduled', error }))
    t.mock.timers.tick(399)
    await setImmediate()
    assert.equal(asked.length, 1)
    t.mock.timers.tick(1)
    await setImmediate()
    assert.equal(asked.length, 2)
    t.mock.timers.tick(100)
    await refused
    records.set('a', recordOf('a'))
    const without = results.wait('a', 10, undefined)
    await setImmediate()
    t.mock.timers.tick(10)
    await assert.rejects(without, (thrown: Error) => coded('ResultTimeout', /goes on$/)(thrown) && !('cause' in thrown))
  })

  test('a store that is away for now is asked again; one that fails for good is told', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { results, records, fail } = looking()
    records.set('a', done('a'))
    fail(new MillpondError('StoreBusy', 'locked'))
    const result = results.wait('a', undefined, undefined)
    await setImmediate()
    fail()
    t.mock.timers.tick(1000)
    assert.equal(await result, 'a')
    fail(new MillpondError('StoreCorrupt', 'damaged'))
    await assert.rejects(results.wait('a', undefined, undefined), coded('StoreCorrupt'))
  })

  test('closing tells what has finished, and Closed for the rest', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { results, records, listening } = looking()
    records.set('a', recordOf('a'))
    records.set('b', recordOf('b'))
    const [a, b] = [results.wait('a', undefined, undefined), results.wait('b', undefined, undefined)]
    const refused = assert.rejects(b, coded('Closed'))
    await setImmediate()
    records.set('a', done('a'))
    await results.close()
    assert.equal(await a, 'a')
    await refused
    assert.deepEqual(listening, [true, false])
  })

  test('a result that cannot be read is told so', async () => {
    const { results, records } = looking()
    records.set('a', recordOf('a', { state: 'done', result: { encoding: 'json', body: '{' } }))
    await assert.rejects(results.wait('a', undefined, undefined), coded('PayloadNotDecodable', /result of job a/))
  })
})
