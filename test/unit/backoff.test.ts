import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Backoff, backoff } from '../../src/backoff.ts'
import { isMillpondError } from '../../src/errors.ts'
import { vectors } from './vectors.ts'

interface Case {
  about: string
  options: Backoff
  attempt: number
  random: number
  ms: number
}
const { cases, refused } = vectors<{ cases: Case[]; refused: { about: string; options: Backoff; error: string }[] }>(
  'backoff',
)

describe('backoff', () => {
  for (const { about, options, attempt, random, ms } of cases) {
    test(`${about}: attempt ${attempt}, random ${random} → ${ms} ms`, () => {
      assert.equal(backoff(options, () => random)(attempt, new Error('x')), ms)
    })
  }

  for (const { about, options, error } of refused) {
    test(`refused: ${about}`, () => {
      assert.throws(
        () => backoff(options),
        (thrown) => isMillpondError(thrown) && thrown.code === error && /backoff/.test(thrown.message),
      )
    })
  }

  test('exponential is what happens unless set, with chance of its own', () => {
    const delay = backoff()
    const delays = new Set(Array.from({ length: 50 }, () => delay(1, undefined)))
    assert.ok(delays.size > 1)
    for (const ms of delays) assert.ok(ms > 500 - 1 && ms <= 1000, `${ms}`)
  })

  test('a function is asked, and its durations are understood', () => {
    const asked: unknown[] = []
    const delay = backoff((attempt, error) => {
      asked.push([attempt, error])
      return '2s'
    })
    assert.equal(delay(7, 'e'), 2000)
    assert.deepEqual(asked, [[7, 'e']])
  })

  test('a function that returns no duration is refused then', () => {
    const delay = backoff(() => Number.NaN)
    assert.throws(
      () => delay(1, undefined),
      (thrown) => isMillpondError(thrown, 'InvalidOption') && /backoff function returned/.test(thrown.message),
    )
  })
})
