/** The states of an attempt, and what its handler sees of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { AttemptContext } from '../../src/worker/attempt-context.ts'
import { Deadline } from '../../src/worker/deadline.ts'
import { Leases } from '../../src/worker/leases.ts'
import { claimedJob, noSteps, storeOf } from './suite.ts'

const REASON = new MillpondError('Closed', 'closed')
const attempt = () => new Attempt(claimedJob('a'), { now: 0, at: 0, heldUntil: 0 })
const terms = {
  maxPayload: 1000,
  reportSoon() {},
  logSoon() {},
  assertRates() {},
  parents: async () => [],
  steps: noSteps,
  park() {},
}

test('buffered, waiting for the replica, running, ending', async () => {
  const it = attempt()
  assert.equal(it.state, 'buffered')
  it.start(1)
  const waited = it.awaitReplica(Promise.resolve())
  assert.equal(it.state, 'awaitingReplica')
  assert.equal(await waited, true)
  assert.equal(it.state, 'running')
  assert.ok(it.isOpen)
  it.end()
  assert.equal(it.state, 'ending')
  assert.ok(!it.isOpen)
})

test('stopped while it waits for the replica: its handler is not to be called', async () => {
  const it = attempt()
  it.start(1)
  const waited = it.awaitReplica(Promise.resolve())
  it.stop(REASON)
  assert.equal(await waited, false)
})

test('a stopped attempt stays so, with the first reason; listeners hear of it once, or at once', () => {
  const it = attempt()
  const heard: unknown[] = []
  it.start(1)
  it.whenStopped((reason) => heard.push(reason))
  it.stop(REASON)
  it.stop(new MillpondError('JobCancelled', 'cancelled'))
  it.end()
  it.whenStopped((reason) => heard.push(reason))
  assert.equal(it.state, 'stopped')
  assert.equal(it.stopped, REASON)
  assert.deepEqual(heard, [REASON, REASON])
})

test('a handler sees its context and nothing of the record', () => {
  const it = attempt()
  const context = new AttemptContext(it, terms)
  for (const name of ['claimed', 'state', 'list', 'stop', 'heldUntil']) assert.ok(!(name in context), name)
  const { signal } = context
  it.stop(REASON)
  assert.equal(signal.reason, REASON)
  assert.equal(context.signal, signal)
})

test('timeouts and leases of more than a timer can hold, as SQL may set them, are not over at once', (t) => {
  const times: number[] = []
  const { setTimeout, setInterval } = globalThis
  t.after(() => Object.assign(globalThis, { setTimeout, setInterval }))
  const noted =
    (set: typeof setTimeout | typeof setInterval) =>
    (then: () => void, ms = 0): unknown => {
      times.push(ms)
      return set(then, ms)
    }
  Object.assign(globalThis, { setTimeout: noted(setTimeout), setInterval: noted(setInterval) })
  new Deadline(2 ** 31, () => {}).cancel()
  const leases = new Leases(storeOf({}), 'q', { held: () => [], lost() {}, trouble() {} })
  leases.lasting(2 ** 33)
  leases.close()
  assert.equal(times.length, 2)
  assert.ok(times.every((ms) => ms < 2 ** 31))
})
