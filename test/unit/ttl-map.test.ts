/** What is kept for a moment: its bounds, and that it goes by itself. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TtlMap } from '../../src/values/collections/ttl-map.ts'

describe('kept', () => {
  test('the oldest make room by weight, and what is heavier than all the room is not kept', () => {
    const map = new TtlMap<string>({ ttl: 60_000, entries: 10, weight: 100 })
    map.put('a', 'A', 40)
    map.put('b', 'B', 40)
    map.put('c', 'C', 60)
    assert.deepEqual([...map.keys()], ['b', 'c'])
    assert.equal(map.weight, 100)
    map.put('b', 'heavy', 101)
    assert.equal(map.get('b'), undefined, 'nor what stood there before')
    assert.equal(map.weight, 60)
    map.put('c', 'again', 10)
    assert.deepEqual([map.get('c'), map.size, map.weight], ['again', 1, 10])
    map.clear()
    assert.deepEqual([map.get('c'), map.size, map.weight], [undefined, 0, 0])
  })

  test('one timer removes what is over, and a shorter life than the others is kept to', (t) => {
    let now = 0
    t.mock.timers.enable({ apis: ['setTimeout'] })
    t.mock.method(performance, 'now', () => now)
    const tick = (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
    }
    const map = new TtlMap<number>({ ttl: 100, entries: 10 })
    map.put('a', 1)
    tick(50)
    map.put('b', 2)
    map.put('short', 3, 0, 10)
    tick(10)
    assert.equal(map.get('short'), undefined)
    assert.equal(map.size, 2)
    tick(40)
    assert.deepEqual([...map.keys()], ['b'])
    tick(50)
    assert.equal(map.size, 0)
    map.put('c', 4)
    tick(100)
    assert.equal(map.size, 0, 'and it goes on after it was empty')
  })
})
