/** A store that fails on demand tells whether any ending is lost or told twice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Attempt } from '../../src/attempt.ts'
import { MillpondError } from '../../src/errors.ts'
import { completed, type Ending, failed, released, Settler } from '../../src/settler.ts'
import type { FailOutcome, HoldOutcome, Store } from '../../src/store.ts'
import { claimedJob, coded, storeOf, until } from './suite.ts'

const BUSY = new MillpondError('StoreBusy', 'locked')
const ERROR = { code: 'HandlerFailed', name: 'Error', message: 'no' }

const attemptOf = (id: string) =>
  new Attempt(
    claimedJob(id, { fence: 7 }),
    { now: 0, at: 0, heldUntil: Number.POSITIVE_INFINITY },
    { maxPayload: 1000, reportSoon() {} },
  )
const complete = (id: string): Ending => completed(attemptOf(id), null, undefined)
const fail = (id: string): Ending => failed(attemptOf(id), ERROR, 5)
const release = (id: string): Ending => released(attemptOf(id))
const idOf = (ending: Ending) => ending.attempt.claimed.id

function settling(given: Partial<Store>) {
  const told: [id: string, outcome: HoldOutcome | FailOutcome][] = []
  const troubles: MillpondError[] = []
  const settler = new Settler(
    storeOf(given),
    'q',
    (ending, outcome) => told.push([idOf(ending), outcome]),
    (error) => troubles.push(error),
  )
  return { settler, told, troubles }
}

describe('settler', () => {
  test('each kind of ending goes to its operation, and gets its own outcome', async () => {
    const calls: unknown[] = []
    const a = claimedJob('a', { fence: 7 })
    const claimOf = (id: string) => ({ ...a, id })
    const { settler, told, troubles } = settling({
      complete: async (queue, completions) => {
        calls.push(['complete', queue, completions])
        return ['ok', 'stale']
      },
      fail: async (queue, failures) => {
        calls.push(['fail', queue, failures])
        return ['retry', 'dead']
      },
      release: async (queue, holds) => {
        calls.push(['release', queue, holds])
        return ['ok']
      },
    })
    for (const ending of [complete('a'), fail('b'), release('c'), complete('d'), fail('e')]) settler.add(ending)
    assert.equal(settler.pending, true)
    assert.deepEqual(calls, [], 'adding alone tells nothing')
    await settler.flushed()
    assert.equal(calls.length, 3)
    assert.partialDeepStrictEqual(calls, [
      [
        'complete',
        'q',
        [
          { id: 'a', fence: 7, claim: claimOf('a'), result: null },
          { id: 'd', fence: 7, claim: claimOf('d'), result: null },
        ],
      ],
      [
        'fail',
        'q',
        [
          { id: 'b', fence: 7, claim: claimOf('b'), error: ERROR, delay: 5 },
          { id: 'e', fence: 7, claim: claimOf('e'), error: ERROR, delay: 5 },
        ],
      ],
      ['release', 'q', [{ id: 'c', fence: 7, claim: claimOf('c') }]],
    ])
    assert.deepEqual(told.sort(), [
      ['a', 'ok'],
      ['b', 'retry'],
      ['c', 'ok'],
      ['d', 'stale'],
      ['e', 'dead'],
    ])
    assert.equal(settler.pending, false)
    assert.deepEqual(troubles, [])
  })

  test('what ends during a call goes in one call after it', async () => {
    const calls: string[][] = []
    const going = Promise.withResolvers<void>()
    const { settler } = settling({
      complete: async (_, completions) => {
        calls.push(completions.map(({ id }) => id))
        if (calls.length === 1) await going.promise
        return completions.map(() => 'ok')
      },
    })
    settler.add(complete('a'))
    settler.flush()
    settler.add(complete('b'))
    settler.flush()
    settler.add(complete('c'))
    settler.flush()
    await setImmediate()
    assert.deepEqual(calls, [['a']])
    going.resolve()
    await settler.flushed()
    assert.deepEqual(calls, [['a'], ['b', 'c']])
  })

  test('what the store fails to take is told again until it takes it, once', async () => {
    let failures = 3
    const calls: string[][] = []
    const { settler, told, troubles } = settling({
      complete: async (_, completions) => {
        calls.push(completions.map(({ id }) => id))
        if (failures-- > 0) throw BUSY
        return completions.map(() => 'ok')
      },
    })
    settler.add(complete('a'))
    settler.flush()
    await until(() => troubles.length === 1)
    settler.add(complete('b'))
    settler.flush()
    await settler.flushed()
    assert.deepEqual(calls, [['a'], ['a', 'b'], ['a', 'b'], ['a', 'b']])
    assert.deepEqual(told, [
      ['a', 'ok'],
      ['b', 'ok'],
    ])
    assert.deepEqual(troubles, [BUSY, BUSY, BUSY])
  })

  test('where one of the three calls fails, the others are not repeated', async () => {
    let failures = 1
    let completions = 0
    const { settler, told } = settling({
      complete: async () => {
        completions++
        return ['ok']
      },
      fail: async () => {
        if (failures-- > 0) throw BUSY
        return ['retry']
      },
      release: async () => ['ok'],
    })
    for (const ending of [complete('a'), fail('b'), release('c')]) settler.add(ending)
    await settler.flushed()
    assert.equal(completions, 1)
    assert.deepEqual(told.sort(), [
      ['a', 'ok'],
      ['b', 'retry'],
      ['c', 'ok'],
    ])
  })

  test('an error of another kind is told as StoreFailed', async () => {
    let failures = 1
    const { settler, troubles } = settling({
      release: async () => {
        if (failures-- > 0) throw new TypeError('a bug')
        return ['ok']
      },
    })
    settler.add(release('a'))
    await settler.flushed()
    assert.equal(troubles.length, 1)
    assert.throws(
      () => {
        throw troubles[0]
      },
      coded('StoreFailed', /a bug/),
    )
    assert.ok(troubles[0]?.cause instanceof TypeError)
  })

  test('a store that is closed is told nothing more', async () => {
    const { settler, told, troubles } = settling({
      complete: async () => {
        throw new MillpondError('Closed', 'closed')
      },
    })
    settler.add(complete('a'))
    await settler.flushed()
    assert.deepEqual([told, troubles.length, settler.pending], [[], 1, false])
  })

  test('abandoned, it forgets what it could not tell, and lets go of those who wait', async () => {
    const { settler, told, troubles } = settling({
      complete: async () => {
        throw BUSY
      },
    })
    settler.add(complete('a'))
    settler.add(complete('b'))
    const flushed = settler.flushed()
    await until(() => troubles.length === 1)
    assert.equal(settler.abandon(), 2)
    await flushed
    assert.deepEqual([told, settler.pending], [[], false])
  })

  test('abandoned, it can still be used', async () => {
    let failing = true
    const { settler, told, troubles } = settling({
      complete: async () => {
        if (failing) throw BUSY
        return ['ok']
      },
    })
    settler.add(complete('a'))
    settler.flush()
    await until(() => troubles.length === 1)
    settler.abandon()
    failing = false
    settler.add(complete('b'))
    await settler.flushed()
    assert.deepEqual(told, [['b', 'ok']])
  })
})
