import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { Swept } from '../../src/values/operations/swept.ts'
import { Sweeper } from '../../src/worker/sweeper.ts'
import { until } from '../support/until.ts'
import { storeOf } from './suite.ts'

const NOTHING: Swept = { lost: [], promoted: 0, expired: 0, more: false, nextDue: null, queues: 0, schedules: null }

const DAILY = {
  ...{
    name: 's',
    version: '1',
    when: '@daily',
    tz: 'UTC',
    missed: 'once' as const,
    jitter: 0,
    from: null,
    until: null,
  },
  ...{ paused: false, planned: false, nextAt: 0, changedAt: 0, declared: true, lastAt: null, job: {} as never },
}

/** Keeps a sweep from ending until it is let go. */
function sweeping(answers: (Partial<Swept> | Error)[]) {
  const heard: unknown[] = []
  const sweeps: (() => void)[] = []
  const store = storeOf({
    sweep: () =>
      new Promise((resolve, reject) => {
        const answer = answers[sweeps.length] ?? {}
        sweeps.push(() => (answer instanceof Error ? reject(answer) : resolve({ ...NOTHING, ...answer })))
      }),
  })
  const sweeper = new Sweeper(
    store,
    ({ lost }) => heard.push(...lost),
    (error) => heard.push(error),
  )
  return { sweeper, heard, sweeps }
}

/** The sweeper's own timer holds no process, so the test's must. */
async function held(run: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, 1000)
  try {
    await run()
  } finally {
    clearInterval(timer)
  }
}

describe('sweeper', () => {
  test('sweeps at once when it starts, and not before', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([])
      sweeper.due(0)
      await sleep(5)
      assert.equal(sweeps.length, 0)
      sweeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await sweeper.stop()
    }))

  test('sweeps again at once while there may be more', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([{ more: true }, { more: true }])
      sweeper.start()
      for (const index of [0, 1, 2]) {
        await until(() => sweeps.length === index + 1)
        sweeps[index]?.()
      }
      await sweeper.stop()
    }))

  test('goes on while schedules are being fired', () =>
    held(async () => {
      const fired = Promise.withResolvers<[]>()
      let sweeps = 0
      let firings = 0
      const store = storeOf({
        sweep: async () => {
          sweeps++
          return { ...NOTHING, nextDue: 1, schedules: { now: 0, due: [DAILY] } }
        },
        fire: async () => {
          firings++
          return fired.promise
        },
      })
      const sweeper = new Sweeper(
        store,
        () => {},
        () => {},
      )
      sweeper.start()
      await until(() => sweeps > 3)
      fired.resolve([])
      assert.equal(firings, 1)
      await sweeper.stop()
    }))

  test('sweeps when the next job is due', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([{ nextDue: 3 }])
      sweeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await until(() => sweeps.length === 2)
      sweeps[1]?.()
      await sweeper.stop()
    }))

  test('is told of a job that is due sooner', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([])
      sweeper.start()
      await until(() => sweeps.length === 1)
      sweeps[0]?.()
      await sleep(1)
      const before = performance.now()
      sweeper.due(500)
      sweeper.due(2)
      sweeper.due(700)
      await until(() => sweeps.length === 2)
      assert.ok(performance.now() - before < 450, 'the soonest counts')
      sweeps[1]?.()
      await sweeper.stop()
    }))

  test('a job that falls due while a sweep is under way is not forgotten', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([])
      sweeper.start()
      await until(() => sweeps.length === 1)
      sweeper.due(1)
      await sleep(10)
      assert.equal(sweeps.length, 1, 'one sweep at a time')
      sweeps[0]?.()
      const before = performance.now()
      await until(() => sweeps.length === 2)
      assert.ok(performance.now() - before < 900, 'at once, not with the next round')
      sweeps[1]?.()
      await sweeper.stop()
    }))

  test('tells of lost claims, and of trouble; and goes on', () =>
    held(async () => {
      const busy = new MillpondError('StoreBusy', 'locked')
      const lost = { id: 'a', queue: 'q', attempt: 2, state: 'waiting' as const }
      const { sweeper, heard, sweeps } = sweeping([busy, { lost: [lost] }])
      sweeper.start()
      for (const index of [0, 1]) {
        await until(() => sweeps.length === index + 1)
        sweeps[index]?.()
      }
      await until(() => heard.length === 2)
      assert.deepEqual(heard, [busy, lost])
      await sweeper.stop()
    }))

  test('stopping waits for a sweep under way; it can be started again', () =>
    held(async () => {
      const { sweeper, sweeps } = sweeping([])
      sweeper.start()
      await until(() => sweeps.length === 1)
      let stopped = false
      const stopping = sweeper.stop().then(() => {
        stopped = true
      })
      await sleep(2)
      assert.equal(stopped, false)
      // Before the old sweep is over.
      sweeper.start()
      await sleep(5)
      sweeps[0]?.()
      await stopping
      await until(() => sweeps.length === 2)
      const again = sweeper.stop()
      sweeps[1]?.()
      await again
      await sleep(5)
      assert.equal(sweeps.length, 2)
    }))
})
