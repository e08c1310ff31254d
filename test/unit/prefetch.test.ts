import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Prefetch } from '../../src/worker/prefetch.ts'

function learned(window: number, ...runs: number[]): Prefetch {
  const prefetch = new Prefetch(window)
  for (const ms of runs) prefetch.ran(ms)
  return prefetch
}

describe('prefetch', () => {
  test('nothing is known at first: nothing is claimed ahead', () => {
    assert.equal(new Prefetch(50).buffer(100), 0)
  })

  test('as many as the slots that get on are expected to start within the window', () => {
    assert.equal(learned(50, 5).buffer(1), 10)
    assert.equal(learned(50, 5).buffer(4), 40)
    assert.equal(learned(50, 20).buffer(1), 2)
    assert.equal(learned(50, 49).buffer(1), 1)
    assert.equal(learned(50, 51).buffer(1), 0, 'long jobs are pulled one by one')
    assert.equal(learned(50, 10_000).buffer(10), 0)
  })

  test('no slot gets on: nothing', () => {
    assert.equal(learned(50, 1).buffer(0), 0)
  })

  test('a window of 0: never', () => {
    assert.equal(learned(0, 0.001).buffer(1000), 0)
    assert.equal(learned(0, 0).buffer(1000), 0)
  })

  test('never more than a thousand', () => {
    assert.equal(learned(50, 0).buffer(1), 1000)
    assert.equal(learned(50, 0.0001).buffer(100), 1000)
    assert.equal(learned(50, 1).buffer(1000), 1000)
  })

  test('one long job among short ones is believed at once', () => {
    const prefetch = learned(50, ...Array.from({ length: 100 }, () => 5))
    assert.equal(prefetch.buffer(1), 10)
    prefetch.ran(1000)
    assert.equal(prefetch.buffer(1), 0)
  })

  test('short ones after long ones are believed by and by', () => {
    const prefetch = learned(50, 1000)
    prefetch.ran(5)
    assert.equal(prefetch.buffer(1), 0)
    for (let n = 0; n < 20; n++) prefetch.ran(5)
    assert.equal(prefetch.buffer(1), 0)
    for (let n = 0; n < 200; n++) prefetch.ran(5)
    assert.ok(prefetch.buffer(1) >= 9)
  })
})
