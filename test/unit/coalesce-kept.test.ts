/** What is kept for a moment: its bounds, and that it goes by itself. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Kept } from '../../src/coalesce/kept.ts'

describe('kept', () => {
  test('the oldest make room by weight, and what is heavier than all the room is not kept', () => {
    const kept = new Kept<string>({ ttl: 60_000, entries: 10, weight: 100 })
    kept.put('a', 'A', 40)
    kept.put('b', 'B', 40)
    kept.put('c', 'C', 60)
    assert.deepEqual([...kept.keys()], ['b', 'c'])
    assert.equal(kept.weight, 100)
    kept.put('b', 'heavy', 101)
    assert.equal(kept.get('b'), undefined, 'nor what stood there before')
    assert.equal(kept.weight, 60)
    kept.put('c', 'again', 10)
    assert.deepEqual([kept.get('c'), kept.size, kept.weight], ['again', 1, 10])
    kept.clear()
    assert.deepEqual([kept.get('c'), kept.size, kept.weight], [undefined, 0, 0])
  })

  test('one timer removes what is over, and a shorter life than the others is kept to', (t) => {
    let now = 0
    t.mock.timers.enable({ apis: ['setTimeout'] })
    t.mock.method(performance, 'now', () => now)
    const tick = (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
    }
    const kept = new Kept<number>({ ttl: 100, entries: 10 })
    kept.put('a', 1)
    tick(50)
    kept.put('b', 2)
    kept.put('short', 3, 0, 10)
    tick(10)
    assert.equal(kept.get('short'), undefined)
    assert.equal(kept.size, 2)
    tick(40)
    assert.deepEqual([...kept.keys()], ['b'])
    tick(50)
    assert.equal(kept.size, 0)
    kept.put('c', 4)
    tick(100)
    assert.equal(kept.size, 0, 'and it goes on after it was empty')
  })
})
