/** Extensions that overlap: a store that does not answer, or answers late. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { Encoded, ExtendOutcome } from '../../src/values/jobs/records.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { Leases } from '../../src/worker/leases.ts'
import { claimedJob, storeOf } from './suite.ts'

const LEASE = 300

interface Call {
  progress: (Encoded | null | undefined)[]
  answer(...outcomes: ExtendOutcome[]): Promise<void>
  fail(): Promise<void>
}

const report = (body: string): Encoded => ({ encoding: 'json', body })

/** One attempt held by a worker whose every extension waits for its answer. */
function extending(t: TestContext) {
  let time = 1_000
  t.mock.method(performance, 'now', () => time)
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  const calls: Call[] = []
  const troubles: MillpondError[] = []
  const lost: string[] = []
  const store = storeOf({
    extend({ items }) {
      const { promise, resolve, reject } = Promise.withResolvers<ExtendOutcome[]>()
      calls.push({
        progress: items.map(({ progress }) => progress),
        async answer(...outcomes) {
          resolve(outcomes)
          await setImmediate()
        },
        async fail() {
          reject(new MillpondError('StoreUnavailable', 'no answer'))
          await setImmediate()
        },
      })
      return promise
    },
  })
  const attempt = new Attempt(claimedJob('a'), { now: 0, at: time, heldUntil: time + LEASE })
  const leases = new Leases(store, 'q', {
    held: () => [attempt],
    lost: (_, { code }) => lost.push(code),
    trouble: (error) => troubles.push(error),
  })
  t.after(() => leases.close())
  leases.lasting(LEASE)
  const call = (nth: number): Call => calls[nth] ?? assert.fail(`call ${nth} was not made`)
  return {
    ...{ attempt, call, calls, troubles, lost },
    pass(ms: number) {
      time += ms
      t.mock.timers.tick(ms)
    },
  }
}

test('an extension does not wait for one that hangs, and a late answer takes nothing back', async (t) => {
  const { attempt, call, calls, pass, lost } = extending(t)
  pass(LEASE / 3)
  pass(LEASE / 3)
  assert.equal(calls.length, 3)
  await call(2).answer('ok')
  assert.equal(attempt.heldUntil, 1_200 + LEASE)
  await call(1).answer('ok')
  assert.equal(attempt.heldUntil, 1_200 + LEASE)
  await call(0).answer('stale')
  assert.deepEqual(lost, ['StaleAttempt'])
})

test('a report goes with every extension until one that carried it is answered', async (t) => {
  const { attempt, call, pass, troubles } = extending(t)
  await call(0).answer('ok')
  attempt.unreported = report('1')
  pass(LEASE / 3)
  pass(LEASE / 3)
  attempt.unreported = report('2')
  pass(LEASE / 3)
  assert.deepEqual(
    [1, 2, 3].map((nth) => call(nth).progress),
    [[report('1')], [report('1')], [report('2')]],
  )
  // What answers of older reports say concerns the newest no more.
  await call(1).fail()
  await call(2).answer('ok')
  assert.deepEqual(attempt.unreported, report('2'))
  await call(3).answer('ok')
  assert.equal(attempt.unreported, null)
  assert.equal(troubles.length, 1)
  pass(LEASE / 3)
  assert.deepEqual(call(4).progress, [null])
})

test('a report is sent again, soon, where another transaction has the job', async (t) => {
  const { attempt, call, calls, pass, lost } = extending(t)
  await call(0).answer('ok')
  const { heldUntil } = attempt
  attempt.unreported = report('1')
  pass(LEASE / 3)
  await call(1).answer('held')
  assert.deepEqual([attempt.heldUntil, lost], [heldUntil, []])
  pass(250)
  assert.deepEqual(call(calls.length - 1).progress, [report('1')])
  await call(calls.length - 1).answer('ok')
  assert.equal(attempt.unreported, null)
})
