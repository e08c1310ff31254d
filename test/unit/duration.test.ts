import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { milliseconds, shown } from '../../src/values/time/duration.ts'
import { coded } from './suite.ts'

describe('duration', () => {
  const good: [unknown, number][] = [
    [0, 0],
    [1, 1],
    [1.4, 1],
    [1.5, 2],
    ['0ms', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5s', 1500],
    ['0.5ms', 1],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['36525d', 3_155_760_000_000],
    [3_155_760_000_000, 3_155_760_000_000],
  ]
  for (const [duration, ms] of good) {
    test(`${JSON.stringify(duration)} is ${ms} ms`, () => assert.equal(milliseconds(duration, 'delay'), ms))
  }

  const bad = [
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    3_155_760_000_001,
    '36526d',
    '',
    '5',
    's',
    '5 s',
    ' 5s',
    '5s ',
    '5S',
    '-5s',
    '+5s',
    '.5s',
    '5.s',
    '1e3ms',
    '5w',
    '5toString',
    '1h30m',
    '٣s',
    null,
    undefined,
    true,
    5n,
    {},
    ['5s'],
    new Date(0),
    Object.create(null),
  ]
  for (const duration of bad) {
    test(`${shown(duration)} is refused`, () => {
      const message = /^delay must be a duration such as '250ms'.* from 0 ms to 36525d; got /
      assert.throws(() => milliseconds(duration, 'delay'), coded('InvalidOption', message))
    })
  }

  test('least and most bound it', () => {
    assert.equal(milliseconds('50ms', 'lease', 50, 100), 50)
    assert.equal(milliseconds('100ms', 'lease', 50, 100), 100)
    for (const duration of [49, '101ms']) {
      assert.throws(
        () => milliseconds(duration, 'lease', 50, 86_400_000 / 864_000),
        coded('InvalidOption', /from 50 ms/),
      )
    }
  })
})

describe('shown', () => {
  const cases: [unknown, RegExp][] = [
    ['a "quoted"\ntext', /^"a \\"quoted\\"\\ntext"$/],
    [undefined, /^undefined$/],
    [null, /^null$/],
    [5n, /^5$/],
    [Symbol('s'), /^Symbol\(s\)$/],
    ['redis://u:secret@host', /^"redis:\/\/…"$/],
    [new URL('redis://u:secret@host'), /^a URL$/],
    [['secret'], /^an array$/],
    [() => 'secret', /^a function$/],
    [{ toString: () => 'secret' }, /^an object$/],
    [Object.create(null), /^an object$/],
    ['x'.repeat(1000), /^"x{76}…$/],
  ]
  for (const [value, text] of cases) {
    test(String(text), () => assert.match(shown(value), text))
  }
})
