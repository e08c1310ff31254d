/** A store that fails on demand tells whether any ending is lost or told twice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Operations } from '../../src/store.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { FailOutcome, HoldOutcome } from '../../src/values/jobs/records.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { completed, failed, released, type Untold } from '../../src/worker/ending.ts'
import { EndingBatches } from '../../src/worker/ending-batches.ts'
import { until } from '../support/until.ts'
import { claimedJob, coded, storeOf } from './suite.ts'

const BUSY = new MillpondError('StoreBusy', 'locked')
const ERROR = { code: 'HandlerFailed', name: 'Error', message: 'no' }

const attemptOf = (id: string) =>
  new Attempt(claimedJob(id, { fence: 7 }), { now: 0, at: 0, heldUntil: Number.POSITIVE_INFINITY })
const complete = (id: string): Untold => completed(attemptOf(id), null, undefined)
const fail = (id: string): Untold => failed(attemptOf(id), ERROR, 5)
const release = (id: string): Untold => released(attemptOf(id))
const idOf = (ending: Untold) => ending.attempt.claimed.id

function settling(given: Partial<Operations>) {
  const told: [id: string, outcome: HoldOutcome | FailOutcome][] = []
  const troubles: MillpondError[] = []
  const endings = new EndingBatches(
    storeOf(given),
    'q',
    (ending, outcome) => told.push([idOf(ending), outcome]),
    (error) => troubles.push(error),
  )
  return { endings, told, troubles }
}

describe('ending batches', () => {
  test('a dead job for which there is no room is told again, alone', async () => {
    const sent: string[][] = []
    const { endings, told, troubles } = settling({
      fail: async ({ items }) => {
        sent.push(items.map(({ id }) => id))
        return items.map(({ id }) => (id === 'b' && sent.length < 3 ? 'full' : 'dead'))
      },
    })
    for (const id of ['a', 'b', 'c']) endings.add(fail(id))
    await endings.flushed()
    assert.deepEqual(sent, [['a', 'b', 'c'], ['b'], ['b']])
    assert.deepEqual(
      told,
      ['a', 'c', 'b'].map((id) => [id, 'dead']),
    )
    assert.deepEqual(new Set(troubles.map(({ code }) => code)), new Set(['StoreFull']))
  })

  test('each kind of ending goes to its operation, and gets its own outcome', async () => {
    const calls: unknown[] = []
    const a = claimedJob('a', { fence: 7 })
    const claimOf = (id: string) => ({ ...a, id })
    const { endings, told, troubles } = settling({
      complete: async ({ queue, items: completions }) => {
        calls.push(['complete', queue, completions])
        return ['ok', 'stale']
      },
      fail: async ({ queue, items: failures }) => {
        calls.push(['fail', queue, failures])
        return ['retry', 'dead']
      },
      release: async ({ queue, items: holds }) => {
        calls.push(['release', queue, holds])
        return ['ok']
      },
    })
    for (const ending of [complete('a'), fail('b'), release('c'), complete('d'), fail('e')]) endings.add(ending)
    assert.equal(endings.attempts.length, 5)
    assert.deepEqual(calls, [], 'adding alone tells nothing')
    await endings.flushed()
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
    assert.equal(endings.attempts.length, 0)
    assert.deepEqual(troubles, [])
  })

  test('what ends during a call goes in one call after it', async () => {
    const calls: string[][] = []
    const going = Promise.withResolvers<void>()
    const { endings } = settling({
      complete: async ({ items: completions }) => {
        calls.push(completions.map(({ id }) => id))
        if (calls.length === 1) await going.promise
        return completions.map(() => 'ok')
      },
    })
    endings.add(complete('a'))
    endings.flush()
    endings.add(complete('b'))
    endings.flush()
    endings.add(complete('c'))
    endings.flush()
    await setImmediate()
    assert.deepEqual(calls, [['a']])
    going.resolve()
    await endings.flushed()
    assert.deepEqual(calls, [['a'], ['b', 'c']])
  })

  test('many endings go beside a call; what that one fails to tell is told again before all is flushed', async () => {
    const calls: { ids: string[]; answer: PromiseWithResolvers<void> }[] = []
    const { endings, told, troubles } = settling({
      complete: async ({ items: completions }) => {
        const call = { ids: completions.map(({ id }) => id), answer: Promise.withResolvers<void>() }
        calls.push(call)
        await call.answer.promise
        return completions.map(() => 'ok')
      },
    })
    const many = Array.from({ length: 64 }, (_, index) => `b${index}`)
    for (const id of ['a', ...many.slice(0, 63)]) {
      endings.add(complete(id))
      endings.flush()
    }
    assert.deepEqual(
      calls.map(({ ids }) => ids),
      [['a']],
      '63 wait',
    )
    endings.add(complete('b63'))
    endings.flush()
    assert.deepEqual(
      calls.map(({ ids }) => ids),
      [['a'], many],
    )
    for (const id of many) endings.add(complete(`${id}, later`))
    let isFlushed = false
    const flushed = endings.flushed().then(() => {
      isFlushed = true
    })
    assert.equal(calls.length, 2, 'no third call beside two')
    assert.equal(endings.attempts.length, 129)
    calls[0]?.answer.reject(BUSY)
    await until(() => troubles.length === 1)
    calls[1]?.answer.resolve()
    await until(() => told.length === 64)
    await setImmediate()
    assert.equal(isFlushed, false, 'one failed, others were not sent')
    await until(() => calls.length === 3)
    calls[2]?.answer.resolve()
    await flushed
    assert.deepEqual(calls[2]?.ids, ['a', ...many.map((id) => `${id}, later`)])
    assert.equal(told.length, 129)
  })

  test('what the store fails to take is told again until it takes it, once', async () => {
    let failures = 3
    const calls: string[][] = []
    const { endings, told, troubles } = settling({
      complete: async ({ items: completions }) => {
        calls.push(completions.map(({ id }) => id))
        if (failures-- > 0) throw BUSY
        return completions.map(() => 'ok')
      },
    })
    endings.add(complete('a'))
    endings.flush()
    await until(() => troubles.length === 1)
    endings.add(complete('b'))
    endings.flush()
    await endings.flushed()
    assert.deepEqual(calls, [['a'], ['a', 'b'], ['a', 'b'], ['a', 'b']])
    assert.deepEqual(told, [
      ['a', 'ok'],
      ['b', 'ok'],
    ])
    assert.deepEqual(troubles, [BUSY, BUSY, BUSY])
  })

  test('what was under way when all was forgotten is not told again', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const answers: PromiseWithResolvers<HoldOutcome[]>[] = []
    const { endings, troubles } = settling({
      complete: () => {
        const answer = Promise.withResolvers<HoldOutcome[]>()
        answers.push(answer)
        return answer.promise
      },
    })
    endings.add(complete('a'))
    const flushed = endings.flushed()
    endings.abandon()
    await flushed
    answers[0]?.reject(BUSY)
    await setImmediate()
    t.mock.timers.tick(60_000)
    assert.deepEqual([troubles.length, answers.length, endings.attempts.length], [1, 1, 0])
  })

  test('where one of the three calls fails, the others are not repeated', async () => {
    let failures = 1
    let completions = 0
    const { endings, told } = settling({
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
    for (const ending of [complete('a'), fail('b'), release('c')]) endings.add(ending)
    await endings.flushed()
    assert.equal(completions, 1)
    assert.deepEqual(told.sort(), [
      ['a', 'ok'],
      ['b', 'retry'],
      ['c', 'ok'],
    ])
  })

  test('what another transaction has is sent alone, and holds up no other', async () => {
    const calls: string[][] = []
    const free = Promise.withResolvers<void>()
    const { endings, told, troubles } = settling({
      release: async ({ items, deferred }) => {
        calls.push(items.map(({ id }) => id))
        if (deferred) return items.map(({ id }) => (id === 'a' ? 'held' : 'ok'))
        await free.promise
        return ['ok']
      },
    })
    for (const ending of [release('a'), release('b')]) endings.add(ending)
    endings.flush()
    await until(() => calls.length === 2, 'the call of the one alone')
    assert.deepEqual(
      endings.attempts.map(({ claimed }) => claimed.id),
      ['a'],
    )
    endings.add(release('c'))
    endings.flush()
    await until(() => told.length === 2, 'the next answer')
    free.resolve()
    await endings.flushed()
    assert.deepEqual(calls, [['a', 'b'], ['a'], ['c']])
    assert.deepEqual(
      told.map(([id]) => id),
      ['b', 'c', 'a'],
    )
    assert.deepEqual(troubles, [])
  })

  test('an error of another kind is told as StoreFailed', async () => {
    let failures = 1
    const { endings, troubles } = settling({
      release: async () => {
        if (failures-- > 0) throw new TypeError('a bug')
        return ['ok']
      },
    })
    endings.add(release('a'))
    await endings.flushed()
    assert.equal(troubles.length, 1)
    assert.throws(
      () => {
        throw troubles[0]
      },
      coded('StoreFailed', /a bug/),
    )
    assert.ok(troubles[0]?.cause instanceof TypeError)
  })

  test('an ending that is refused for good becomes a failure without another attempt, and holds up no other', async () => {
    const calls: string[][] = []
    const failures: [string, string, unknown][] = []
    const { endings, told, troubles } = settling({
      complete: async ({ items }) => {
        calls.push(items.map(({ id }) => id))
        if (items.some(({ id }) => id === 'refused')) throw new MillpondError('StoreRefused', 'no “such” result')
        return items.map(() => 'ok')
      },
      fail: async ({ items }) => {
        for (const { id, error, delay } of items) failures.push([id, error.message, delay])
        return items.map(() => 'dead')
      },
    })
    for (const id of ['a', 'refused', 'b', 'c']) endings.add(complete(id))
    await endings.flushed()
    assert.deepEqual(calls, [['a', 'refused', 'b', 'c'], ['a', 'refused'], ['a'], ['refused'], ['b', 'c']])
    assert.deepEqual(failures, [
      ['refused', 'the store cannot keep the result of this attempt: no ?such? result', null],
    ])
    assert.deepEqual(told, [
      ['a', 'ok'],
      ['b', 'ok'],
      ['c', 'ok'],
      ['refused', 'dead'],
    ])
    assert.deepEqual(
      troubles.map(({ code, retryable }) => [code, retryable]),
      [['StoreRefused', false]],
    )
  })

  test('where all of it is refused, the worker lets go; where repeating may help, only that part is told again', async () => {
    let busy = 1
    const { endings, told } = settling({
      complete: async ({ items }) => {
        if (items.some(({ id }) => id === 'refused')) throw new MillpondError('StoreRefused', 'no')
        if (items.some(({ id }) => id === 'later') && busy-- > 0) throw BUSY
        return items.map(() => 'ok')
      },
      fail: async () => {
        throw new MillpondError('StoreRefused', 'never')
      },
    })
    for (const id of ['refused', 'a', 'later', 'b']) endings.add(complete(id))
    await endings.flushed()
    assert.deepEqual(told, [
      ['a', 'ok'],
      ['later', 'ok'],
      ['b', 'ok'],
      ['refused', 'stale'],
    ])
  })

  test('a store that is closed is told nothing more', async () => {
    const { endings, told, troubles } = settling({
      complete: async () => {
        throw new MillpondError('Closed', 'closed')
      },
    })
    endings.add(complete('a'))
    await endings.flushed()
    assert.deepEqual([told, troubles.length, endings.attempts], [[], 1, []])
  })

  test('abandoned, it forgets what it could not tell, and lets go of those who wait', async () => {
    const { endings, told, troubles } = settling({
      complete: async () => {
        throw BUSY
      },
    })
    endings.add(complete('a'))
    endings.add(complete('b'))
    const flushed = endings.flushed()
    await until(() => troubles.length === 1)
    assert.equal(endings.attempts.length, 2)
    endings.abandon()
    await flushed
    assert.deepEqual([told, endings.attempts], [[], []])
  })

  test('abandoned, it can still be used', async () => {
    let failing = true
    const { endings, told, troubles } = settling({
      complete: async () => {
        if (failing) throw BUSY
        return ['ok']
      },
    })
    endings.add(complete('a'))
    endings.flush()
    await until(() => troubles.length === 1)
    endings.abandon()
    failing = false
    endings.add(complete('b'))
    await endings.flushed()
    assert.deepEqual(told, [['b', 'ok']])
  })
})
