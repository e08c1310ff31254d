/** A shared call that is refused for one of its items: the others go through, by each operation that shares calls. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { splitting } from '../../src/batch/splitting.ts'
import { Millpond } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { HistogramSlice } from '../../src/values/figures/histogram.ts'
import { WorkerRegistry } from '../../src/worker/registry.ts'
import { Scheduler } from '../../src/worker/scheduler.ts'
import { type Meddling, meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'

const NUMBERS = Array.from({ length: 100 }, (_, n) => n)
const REFUSED = new MillpondError('StoreRefused', 'not this one')
const BAD = 'n57'

async function pondWith(meddling: Meddling) {
  const store = meddled(await openStore('memory:', {}), meddling)
  return { store, pond: new Millpond(store, 1000) }
}

describe('a shared call that is refused', () => {
  const call = (refused: readonly number[], error = REFUSED) => {
    const calls: (readonly number[])[] = []
    const send = async (items: readonly number[]) => {
      calls.push(items)
      if (items.some((item) => refused.includes(item))) throw error
      return items.map((item) => -item)
    }
    return { calls, send }
  }
  const textOf = (answers: readonly unknown[]) => answers.map((one) => (one === REFUSED ? 'refused' : one))

  test('is sent in halves until the item is alone, in order', async () => {
    const { calls, send } = call([3])
    assert.deepEqual(textOf(await splitting([1, 2, 3, 4, 5], send, 'a test')), [-1, -2, 'refused', -4, -5])
    assert.deepEqual(calls, [[1, 2, 3, 4, 5], [1, 2, 3], [1, 2], [3], [4, 5]])
  })

  test('is not sent behind the refused item where order counts', async () => {
    const { calls, send } = call([2])
    assert.deepEqual(textOf(await splitting([1, 2, 3, 4], send, 'a test', { stops: true })), [
      -1,
      'refused',
      'refused',
      'refused',
    ])
    assert.deepEqual(calls, [[1, 2, 3, 4], [1, 2], [1], [2]])
  })

  for (const code of ['StoreBusy', 'StoreFailed', 'Closed', 'StoreCorrupt'] as const) {
    test(`is not sent in halves after ${code}`, async () => {
      const error = new MillpondError(code, 'no')
      const { calls, send } = call([3], error)
      assert.deepEqual(await splitting([1, 2, 3], send, 'a test'), [error, error, error])
      assert.equal(calls.length, 1)
    })
  }
})

describe('one refused item of 100', () => {
  test('fire and declare: the other schedules fire, and count as declared', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const fired: string[] = []
    const declared: string[] = []
    let refuses = false
    const { pond, store } = await pondWith({
      async fire(input, next) {
        if (input.firings.some(({ name }) => name === BAD)) throw REFUSED
        fired.push(...input.firings.map(({ name }) => name))
        return next(input)
      },
      async declare(input, next) {
        if (refuses && input.schedules.some(({ name }) => name === BAD)) throw REFUSED
        if (refuses) declared.push(...input.schedules.map(({ name }) => name))
        return next(input)
      },
    })
    const troubles: string[] = []
    pond.on('error', (error) => troubles.push(String(error)))
    for (const n of NUMBERS) await pond.schedule(`n${n}`, 'every 1s', pond.queue('q'), n)
    refuses = true
    t.mock.timers.tick(60_000)
    await until(() => declared.length >= 99 && troubles.length > 0)
    assert.equal(new Set(declared).size, 99)

    const due = await store.operations.schedules({ limit: 100 })
    assert.equal(due.length, 100)
    const errors: MillpondError[] = []
    const now = Date.now() + 5_000
    await new Scheduler(store, (error) => errors.push(error)).fire({ now, due })
    assert.equal(new Set(fired).size, 99)
    assert.deepEqual(
      errors.map(({ code, message }) => [code, message]),
      [['StoreRefused', `schedule ${BAD} cannot fire: not this one`]],
    )
    await pond.close()
  })

  test('fire: one that the store is busy with fires later, or half of its jobs at a time', async () => {
    const busy = new MillpondError('StoreBusy', 'held')
    let most = 100
    const fired = new Map<string, number>()
    const { pond, store } = await pondWith({
      async fire(input, next) {
        // Too much work for one call, and one schedule that somebody else holds.
        if (input.firings.some(({ name }) => name === BAD)) throw busy
        if (input.firings.reduce((sum, { jobs }) => sum + jobs.length, 0) > most) throw busy
        for (const { name, jobs } of input.firings) fired.set(name, (fired.get(name) ?? 0) + jobs.length)
        return next(input)
      },
    })
    for (const name of ['n1', BAD]) await pond.schedule(name, 'every 1s', pond.queue('q'), 1, { missed: 'all' })
    const errors: MillpondError[] = []
    const scheduler = new Scheduler(store, (error) => errors.push(error))
    const fire = async (now: number) => {
      // Times in the past as a sweep of that moment would tell them.
      const due = (await store.operations.schedules({ limit: 100 })).filter(
        ({ nextAt }) => nextAt !== null && nextAt <= now,
      )
      await scheduler.fire({ now, due })
    }
    const start = Date.now()
    await fire(start + 1_000)
    most = 3
    await fire(start + 9_000)
    const count = fired.get('n1') ?? 0
    assert.ok(count > 0 && count <= 3, `${count} jobs`)
    assert.ok(!fired.has(BAD))
    assert.deepEqual([...new Set(errors.map(({ message }) => message))], [`schedule ${BAD} fires later: held`])
    await pond.close()
  })

  test('heartbeat: the other workers are known', async () => {
    const beats = new Set<string>()
    const { pond, store } = await pondWith({
      async heartbeat(input, next) {
        if (input.workers.some(({ id }) => id === BAD)) throw REFUSED
        for (const { id } of input.workers) beats.add(id)
        return next(input)
      },
    })
    const registry = new WorkerRegistry(store)
    for (const n of NUMBERS) registry.add(`n${n}`, () => ({ id: `n${n}`, queue: 'q', slots: 1, busy: 0 }))
    await until(() => beats.size === 99)
    assert.ok(!beats.has(BAD))
    await registry.close()
    await pond.close()
  })

  test('record: the other figures are kept', async () => {
    const kept: string[] = []
    const nameOf = ({ priority, metric }: HistogramSlice) => `${metric} ${priority}`
    const { pond } = await pondWith({
      async record(input, next) {
        if (input.slices.map(nameOf).includes('run 3')) throw REFUSED
        kept.push(...input.slices.map(nameOf))
        return next(input)
      },
    })
    const queue = pond.queue('q')
    let ran = 0
    for (let priority = 0; priority < 10; priority++) await queue.push(1, { priority })
    queue.work(() => {
      ran++
    })
    await until(() => ran === 10)
    await pond.close()
    await until(() => new Set(kept).size === 19)
    assert.ok(!kept.includes('run 3'))
  })
})
