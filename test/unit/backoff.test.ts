import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import {
  type BackoffOptions,
  backoffPolicy,
  computedDelay,
  DEFAULT_BACKOFF,
  delayAfter,
} from '../../src/values/settings/backoff.ts'
import { vectors } from './vectors.ts'

interface Case {
  about: string
  options: BackoffOptions
  attempt: number
  random: number
  ms: number
}
const { cases, refused } = vectors<{
  cases: Case[]
  refused: { about: string; options: BackoffOptions; error: string }[]
}>('backoff')

describe('backoff', () => {
  for (const { about, options, attempt, random, ms } of cases) {
    test(`${about}: attempt ${attempt}, random ${random} → ${ms} ms`, () => {
      assert.equal(delayAfter(backoffPolicy(options), attempt, random), ms)
    })
  }

  for (const { about, options, error } of refused) {
    test(`refused: ${about}`, () => {
      assert.throws(
        () => backoffPolicy(options),
        (thrown) => isMillpondError(thrown) && thrown.code === error && /backoff/.test(thrown.message),
      )
    })
  }

  test('exponential means the policy of a queue that sets none', () => {
    assert.deepEqual(backoffPolicy('exponential'), DEFAULT_BACKOFF)
  })

  test('a function is asked, and its durations are understood', () => {
    const asked: unknown[] = []
    const delay = computedDelay((attempt, error) => {
      asked.push([attempt, error])
      return '2s'
    })
    assert.equal(delay(7, 'e'), 2000)
    assert.deepEqual(asked, [[7, 'e']])
  })

  test('a function that returns no duration is refused then', () => {
    const delay = computedDelay(() => Number.NaN)
    assert.throws(
      () => delay(1, undefined),
      (thrown) => isMillpondError(thrown, 'InvalidOption') && /backoff function returned/.test(thrown.message),
    )
  })
})
