import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkOptions, isBoolean, isFunction, isInteger, isSignal } from '../../src/values/options/options.ts'
import { coded } from './suite.ts'

interface Options {
  count?: number
  loud?: boolean
}
const RULES = { count: isInteger(1, 5), loud: isBoolean }
const check = (options: object | undefined, required: ('count' | 'loud')[] = []) =>
  checkOptions<Options>(options, RULES, 'shout', required)

describe('options', () => {
  test('what is fine is handed back', () => {
    const options = { count: 5, loud: false }
    assert.equal(check(options), options)
    assert.deepEqual(check(undefined), {})
    assert.deepEqual(check({ count: undefined }), { count: undefined })
  })

  test('an unknown name is refused, with the known ones', () => {
    for (const name of ['cuont', 'constructor', '__proto__x', '']) {
      assert.throws(
        () => check({ [name]: 1 }),
        coded('InvalidOption', /^shout: unknown option ".*"; known are count, loud(; did you mean count\?)?$/),
      )
    }
    assert.throws(() => check({ cuont: 1 }), coded('InvalidOption', /did you mean count\?$/))
    assert.throws(() => check(JSON.parse('{"__proto__": 1}')), coded('InvalidOption', /unknown option/))
    assert.throws(() => check({ cuont: undefined }), coded('InvalidOption', /"cuont"/), 'even if it is unset')
  })

  test('a bad value is refused, with what it should be and what it was', () => {
    assert.throws(
      () => check({ count: 6 }),
      coded('InvalidOption', /^shout: count must be a whole number from 1 to 5; got 6$/),
    )
    assert.throws(
      () => check({ loud: 'very' }),
      coded('InvalidOption', /^shout: loud must be true or false; got "very"$/),
    )
  })

  test('what is required must be there', () => {
    assert.throws(() => check({ loud: true }, ['count']), coded('InvalidOption', /^shout: count is missing$/))
    assert.throws(() => check({ count: undefined }, ['count']), coded('InvalidOption', /^shout: count is missing$/))
    assert.deepEqual(check({ count: 1 }, ['count']), { count: 1 })
  })

  test('only an object holds options', () => {
    const others: unknown[] = ['text', 5, true, [], [1], () => {}, Promise.resolve({ count: 1 }), new Map()]
    for (const other of others) {
      const given: { other: object } = { other: Object(other) }
      // A primitive as it would come from a caller without types.
      Object.assign(given, { other })
      assert.throws(() => check(given.other), coded('InvalidOption', /^shout takes an object of options; got /))
    }
  })

  test('the ready-made rules', () => {
    for (const value of [0, 6, 1.5, '3', Number.NaN, null, 3n]) assert.notEqual(isInteger(1, 5)(value), true)
    for (const value of [1, 5]) assert.equal(isInteger(1, 5)(value), true)
    assert.equal(isBoolean(false), true)
    assert.notEqual(isBoolean(0), true)
    assert.equal(
      isFunction(() => {}),
      true,
    )
    assert.notEqual(isFunction({}), true)
    assert.equal(isSignal(new AbortController().signal), true)
    assert.notEqual(isSignal({ aborted: false }), true)
  })
})
