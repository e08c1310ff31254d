/** Pushes that wait for room, by a store of the test's own: who is tried when, and who is told what. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { CapacityWaiters } from '../../src/pond/capacity-waiters.ts'
import { Pusher } from '../../src/pond/push/pusher.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { newJob } from '../support/jobs.ts'
import { coded, storeOf } from './suite.ts'

const jobOf = (id: number, bytes = 1): NewJob =>
  newJob({ id: String(id), data: { encoding: 'json', body: 'x'.repeat(bytes) } })

function pushing(room: number) {
  const state = { room, full: 0, failing: false, held: Promise.resolve() }
  const calls: string[][] = []
  const store = storeOf({
    push: async ({ jobs }) => {
      calls.push(jobs.map(({ id }) => id))
      await state.held
      if (state.failing) throw new MillpondError('StoreBusy', 'locked')
      return jobs.map(({ id }) => ({ id, status: state.room-- > 0 ? ('pushed' as const) : ('full' as const) }))
    },
  })
  const waiters = new CapacityWaiters(
    new Pusher(store, () => {}),
    () => {},
    () => state.full++,
  )
  const make = (count: number) => {
    state.room = count
    waiters.rung('q')
  }
  return { waiters, calls, state, make }
}

/** Lets what is ready happen. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate()
}

const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index))

describe('capacity waiters', () => {
  test('while there is room, pushes of a turn go in one call', async () => {
    const { waiters, calls, state } = pushing(100)
    const outcomes = await Promise.all([0, 1, 2].map((id) => waiters.push(jobOf(id))))
    assert.deepEqual(
      outcomes.map(({ id, status }) => [id, status]),
      ids(0, 3).map((id) => [id, 'pushed']),
    )
    assert.deepEqual(calls, [['0', '1', '2']])
    assert.equal(state.full, 0)
  })

  test('a blocked line tries its head only when a bell rings, and nobody is overtaken', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { waiters, calls, state, make } = pushing(2)
    const done: string[] = []
    const pushes = Array.from({ length: 100 }, (_, id) =>
      waiters.push(jobOf(id)).then((outcome) => done.push(outcome.id)),
    )
    await settle()
    assert.deepEqual([done, state.full], [ids(0, 2), 98])
    pushes.push(waiters.push(jobOf(100)).then(({ id }) => done.push(id)))
    await settle()
    assert.deepEqual([calls.length, state.full], [1, 99], 'who comes to a blocked line is not tried')
    make(1)
    await settle()
    assert.deepEqual(done, ids(0, 3))
    assert.equal(calls[1]?.length, 16, 'a few are tried, not all')
    make(1000)
    await Promise.all(pushes)
    assert.deepEqual(done, ids(0, 101))
    assert.equal(state.full, 99, 'each is told of once')
    await waiters.close()
  })

  test('once a job of a call has failed, none after it is stored; others of the line are', async () => {
    const { waiters, calls, state, make } = pushing(0)
    const call = {}
    const pushes = Array.from({ length: 40 }, (_, id) => waiters.push(jobOf(id), id % 2 === 0 ? call : undefined))
    const all = Promise.allSettled(pushes)
    await settle()
    const [first, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    state.failing = true
    state.held = first.promise
    make(100)
    await settle()
    state.held = later.promise
    first.resolve()
    await settle()
    state.failing = false
    later.resolve()
    const settled = await all
    const stored = settled.flatMap(({ status }, id) => (status === 'fulfilled' ? [id] : []))
    const failed = settled.flatMap(({ status }, id) => (status === 'rejected' ? [id] : []))
    assert.deepEqual(failed, [...Array(17).keys(), 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38])
    assert.deepEqual(stored, [17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39])
    assert.deepEqual(calls.slice(2).flat(), stored.map(String))
    assert.equal(state.full, 40, 'each is told of once')
    await waiters.close()
  })

  test('without any bell, it is tried once a second', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { waiters, calls, state } = pushing(0)
    const push = waiters.push(jobOf(0))
    await settle()
    t.mock.timers.tick(1000)
    await settle()
    assert.equal(calls.length, 2)
    state.room = 1
    t.mock.timers.tick(1000)
    assert.equal((await push).status, 'pushed')
    t.mock.timers.tick(10_000)
    await settle()
    assert.equal(calls.length, 3)
  })

  test('a bell that rings during a try is not missed', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { waiters, calls, state, make } = pushing(0)
    const going = Promise.withResolvers<void>()
    state.held = going.promise
    const push = waiters.push(jobOf(0))
    await settle()
    state.held = Promise.resolve()
    waiters.rung('q')
    going.resolve()
    await settle()
    assert.equal(calls.length, 2)
    make(1)
    await push
  })

  test('an error reaches exactly those of its call', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { waiters, state, calls } = pushing(10)
    state.failing = true
    const going = Promise.withResolvers<void>()
    state.held = going.promise
    const first = assert.rejects(waiters.push(jobOf(0)), coded('StoreBusy'))
    await settle()
    const second = waiters.push(jobOf(1))
    going.resolve()
    await first
    state.failing = false
    assert.equal((await second).status, 'pushed')
    assert.deepEqual(calls, [['0'], ['1']])
  })

  test('a call carries a mebibyte at most, unless one job alone has more', async () => {
    const { waiters, calls } = pushing(100)
    const sizes = [600_000, 400_000, 100_000, 2_000_000, 1]
    await Promise.all(sizes.map((bytes, id) => waiters.push(jobOf(id, bytes))))
    assert.deepEqual(calls, [['0', '1'], ['2'], ['3'], ['4']])
  })

  test('closing: who is blocked gets Closed, what is under way its outcome', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const blocked = pushing(0)
    const refused = assert.rejects(blocked.waiters.push(jobOf(0)), coded('Closed', /not stored/))
    await settle()
    await blocked.waiters.close()
    await refused

    const { waiters, state } = pushing(1)
    const going = Promise.withResolvers<void>()
    state.held = going.promise
    const pushes = Promise.allSettled([waiters.push(jobOf(0)), waiters.push(jobOf(1))])
    await settle()
    const closing = waiters.close()
    going.resolve()
    await closing
    const [one, two] = await pushes
    assert.equal(one.status, 'fulfilled')
    assert.ok(two.status === 'rejected')
    assert.ok(coded('Closed')(two.reason))
  })
})
