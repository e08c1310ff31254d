import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import type { Rate } from '../../src/values/settings/limits.ts'
import {
  boundedFull,
  fullAfter,
  fullWithout,
  type RateOption,
  rateOf,
  startableAt,
} from '../../src/values/settings/rate.ts'
import { vectors } from './vectors.ts'

type Step = { now: number; cost: number; full: number } & ({ from: number } | { released: number })

const { cases, bounds, texts, refused } = vectors<{
  cases: { about: string; rate: Rate; full: number; steps: Step[] }[]
  bounds: { about: string; rate: Rate; full: number; fullCost: number; now: number; bounded: number }[]
  texts: { text: RateOption; rate: Rate }[]
  refused: { about: string; rate: RateOption }[]
}>('rate')

describe('rate', () => {
  for (const { about, rate, full, steps } of cases) {
    test(about, () => {
      let kept = full
      for (const step of steps) {
        const { now, cost } = step
        if ('from' in step) {
          assert.equal(startableAt(rate, kept, cost), step.from)
          assert.ok(step.from <= now, 'a start before it is allowed')
          kept = fullAfter(rate, kept, now, cost)
        } else kept = fullWithout(rate, kept, now, step.released, cost)
        assert.equal(kept, step.full)
      }
    })
  }

  for (const { about, rate, full, fullCost, now, bounded } of bounds) {
    test(`bound: ${about}`, () => assert.equal(boundedFull(rate, full, fullCost, now), bounded))
  }

  for (const { text, rate } of texts) test(String(text), () => assert.deepEqual(rateOf(text, 'rate'), rate))

  for (const { about, rate } of refused) {
    test(`refused: ${about}`, () => {
      assert.throws(
        () => rateOf(rate, 'limits.rate'),
        (error) => isMillpondError(error, 'InvalidOption'),
      )
    })
  }
})
