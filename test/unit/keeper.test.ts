import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../src/errors.ts'
import { PondEmitter } from '../../src/events.ts'
import { Keeper } from '../../src/keeper.ts'
import type { Swept } from '../../src/store.ts'
import { storeOf, until } from './suite.ts'

const NOTHING: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0 }

/** Keeps a sweep from ending until it is let go. */
function keeping(answers: (Partial<Swept> | Error)[]) {
  const events = new PondEmitter()
  const sweeps: (() => void)[] = []
  const store = storeOf({
    sweep: () =>
      new Promise((resolve, reject) => {
        const answer = answers[sweeps.length] ?? {}
        sweeps.push(() => (answer instanceof Error ? reject(answer) : resolve({ ...NOTHING, ...answer })))
      }),
  })
  return { keeper: new Keeper(store, events), events, sweeps }
}

/** The keeper's own timer holds no process, so the test's must. */
async function held(run: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, 1000)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
}

describe('keeper', () => {
  test('sweeps at once when it starts, and not before', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([])
      keeper.due(0)
      await sleep(5)
      assert.equal(sweeps.length, 0)
      keeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await keeper.stop()
    }))

  test('sweeps again at once while there may be more', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([{ more: true }, { more: true }])
      keeper.start()
      for (const index of [0, 1, 2]) {
        await until(() => sweeps.length === index + 1)
        sweeps[index]?.()
      }
      await keeper.stop()
    }))

  test('sweeps when the next job is due', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([{ nextDue: 3 }])
      keeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await until(() => sweeps.length === 2)
      sweeps[1]?.()
      await keeper.stop()
    }))

  test('is told of a job that is due sooner', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([])
      keeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await sleep(1)
      const before = performance.now()
      keeper.due(500)
      keeper.due(2)
      keeper.due(700)
      await until(() => sweeps.length === 2)
      assert.ok(performance.now() - before < 450, 'the soonest counts')
      sweeps[1]?.()
      await keeper.stop()
    }))

  test('a job that falls due while a sweep is under way is not forgotten', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([])
      keeper.start()
      await until(() => sweeps.length === 1)
      keeper.due(1)
      await sleep(10)
      assert.equal(sweeps.length, 1, 'one sweep at a time')
      sweeps[0]?.()
      const before = performance.now()
      await until(() => sweeps.length === 2)
      assert.ok(performance.now() - before < 900, 'at once, not with the next round')
      sweeps[1]?.()
      await keeper.stop()
    }))

  test('tells of lost claims, and of trouble; and goes on', () =>
    held(async () => {
      const busy = new MillpondError('StoreBusy', 'locked')
      const lost = { id: 'a', queue: 'q', attempt: 2, state: 'waiting' as const }
      const { keeper, events, sweeps } = keeping([busy, { lost: [lost] }])
      const heard: unknown[] = []
      events.on('error', (error) => heard.push(error))
      events.on('lost', (event) => heard.push(event))
      keeper.start()
      for (const index of [0, 1]) {
        await until(() => sweeps.length === index + 1)
        sweeps[index]?.()
      }
      await until(() => heard.length === 2)
      assert.deepEqual(heard, [busy, lost])
      await keeper.stop()
    }))

  test('stopping waits for a sweep under way; it can be started again', () =>
    held(async () => {
      const { keeper, sweeps } = keeping([])
      keeper.start()
      await until(() => sweeps.length === 1)
      let stopped = false
      const stopping = keeper.stop().then(() => {
        stopped = true
      })
      await sleep(2)
      assert.equal(stopped, false)
      // Before the old sweep is over.
      keeper.start()
      await sleep(5)
      sweeps[0]?.()
      await stopping
      await until(() => sweeps.length === 2)
      const again = keeper.stop()
      sweeps[1]?.()
      await again
      await sleep(5)
      assert.equal(sweeps.length, 2)
    }))
})
