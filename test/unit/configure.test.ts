/** Pushes that come before the store knows their queue's settings, by a store that does not always take them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Millpond } from '../../src/pond/millpond.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { coded, storeOf } from './suite.ts'

test('they go in order once it does; a queue whose settings it refuses fails its own pushes alone, and is tried anew', async () => {
  const calls: string[] = []
  let refuses = true
  const store = storeOf({
    configure: async ({ queue }) => {
      calls.push(`configure ${queue}`)
      if (queue === 'bad' && refuses) throw new MillpondError('StoreBusy', 'not now')
      return []
    },
    push: async ({ jobs }) => {
      calls.push(`push ${jobs.map(({ queue }) => queue).join(' ')}`)
      return jobs.map(({ id }) => ({ status: 'pushed', id }))
    },
    stats: async () => [],
  })
  const pond = new Millpond(store, 1000)
  const [good, bad, plain] = ['good', 'bad', 'plain'].map((name) =>
    pond.queue<number>(name, name === 'plain' ? {} : { capacity: 5 }),
  )
  assert.ok(good && bad && plain)
  const pushed = await Promise.allSettled([good.push(1), bad.push(2), plain.push(3), good.push(4), bad.push(5)])
  assert.deepEqual(
    pushed.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected'],
  )
  for (const each of pushed) if (each.status === 'rejected') coded('StoreBusy')(each.reason)
  assert.deepEqual(calls, ['configure good', 'configure bad', 'push plain good good'])

  refuses = false
  await bad.push(6)
  await good.push(7)
  assert.deepEqual(calls.slice(3), ['configure bad', 'push bad', 'push good'])
  await pond.close()
})

test('one that comes just as it does does not overtake them, and other queues do not wait', async () => {
  const pushes: unknown[] = []
  const told = Promise.withResolvers<void>()
  const store = storeOf({
    configure: () => told.promise.then(() => []),
    push: async ({ jobs }) => {
      pushes.push(...jobs.map(({ data }) => data.body))
      return jobs.map(({ id }) => ({ status: 'pushed', id }))
    },
    stats: async () => [],
  })
  const pond = new Millpond(store, 1000)
  const late = pond.queue<number>('late', { capacity: 5 })
  const early = [late.push(1), late.push(2)]
  await pond.queue<number>('other').push(0)
  assert.deepEqual(pushes, ['0'])

  told.resolve()
  for (let turns = 0; turns < 10; turns++) {
    early.push(late.push(3 + turns))
    await undefined
  }
  await Promise.all(early)
  assert.deepEqual(pushes, ['0', ...early.map((_, n) => String(n + 1))])
  await pond.close()
})

test('closing waits for them, and the store has them', async () => {
  for (const whenFull of ['reject', 'wait'] as const) {
    const pond = await Millpond.open('memory:')
    const pushed = pond.queue<number>('q', { capacity: 50, whenFull }).push(1)
    await pond.close()
    assert.equal((await pushed).existing, false, whenFull)
  }
})

test('one that comes as they fail is tried anew, and no failure is left to nobody', async (t) => {
  let unhandled = 0
  const count = () => unhandled++
  process.on('unhandledRejection', count)
  t.after(() => process.off('unhandledRejection', count))
  let refusals = 0
  const store = storeOf({
    configure: async () => {
      refusals++
      throw new MillpondError('StoreBusy', `refusal ${refusals}`)
    },
    stats: async () => [],
  })
  const pond = new Millpond(store, 1000)
  const queue = pond.queue<number>('q', { capacity: 5 })
  const pushes = []
  for (let turns = 0; turns < 20; turns++) {
    pushes.push(queue.push(turns))
    await undefined
  }
  for (const push of pushes) await assert.rejects(push, coded('StoreBusy', /refusal/))
  assert.ok(refusals > 1)
  await nextTurn()
  assert.equal(unhandled, 0)
  await pond.close()
})

test('a queue object per push tells the store the same settings once, and others at once', async () => {
  const told: unknown[] = []
  const store = storeOf({
    configure: async ({ capacity }) => {
      told.push(capacity)
      return []
    },
    push: async ({ jobs }) => jobs.map(({ id }) => ({ status: 'pushed', id })),
    stats: async () => [],
  })
  const pond = new Millpond(store, 1000)
  for (let i = 0; i < 5; i++) await pond.queue<number>('q', { capacity: 5 }).push(i)
  assert.deepEqual(told, [5])
  await Promise.all([6, 6, 6].map((capacity) => pond.queue<number>('q', { capacity }).push(1)))
  assert.deepEqual(told, [5, 6])
  await pond.queue<number>('q', { capacity: 5 }).push(1)
  assert.deepEqual(told, [5, 6, 5])
  await pond.close()
})
