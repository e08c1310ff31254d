/** The layer in the process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Entry } from '../../src/cache/memory/entry.ts'
import { Memory } from '../../src/cache/memory/memory.ts'

function entryOf(key: string, weight: number): Entry {
  const life = { fresh: 1, stale: 0, error: 0, age: 0, seenAt: 0, epoch: 0 }
  const entry = new Entry({ key, version: '', encoded: undefined, uses: [], suspect: false, ...life })
  entry.weight = weight
  return entry
}

function memoryOf(limit: number) {
  const gone: string[] = []
  const memory = new Memory(limit, ({ key }) => gone.push(key))
  return { memory, gone, keys: () => [...memory.entries()].map(({ key }) => key).toSorted() }
}

test('what was asked for since room was needed last stays, the oldest of the others goes', () => {
  const { memory, gone, keys } = memoryOf(30)
  for (const key of ['a', 'b', 'c']) memory.put(entryOf(key, 10))
  memory.get('a')
  memory.peek('b')
  memory.put(entryOf('d', 10))
  assert.deepEqual([keys(), gone, memory.bytes], [['a', 'c', 'd'], ['b'], 30])
  // It was passed over once; unless it is asked for again it is one like the others.
  memory.put(entryOf('e', 20))
  assert.deepEqual([keys(), gone, memory.bytes, memory.size], [['a', 'e'], ['b', 'c', 'd'], 30, 2])
  memory.put(entryOf('f', 10))
  assert.deepEqual([keys(), memory.bytes], [['e', 'f'], 30])
})

test('where all were asked for the oldest goes, not the new one', () => {
  const { memory, gone } = memoryOf(30)
  for (const key of ['a', 'b', 'c', 'd', 'e']) {
    memory.put(entryOf(key, 10))
    memory.get(key)
  }
  assert.deepEqual(gone, ['a', 'b'])
})

test('however many were asked for, few are looked at for one that goes', () => {
  const { memory, gone } = memoryOf(1000)
  for (let index = 0; index < 1000; index++) memory.put(entryOf(`old ${index}`, 1))
  for (let index = 0; index < 1000; index++) memory.get(`old ${index}`)
  memory.put(entryOf('new', 1))
  assert.deepEqual(gone, ['old 64'])
  memory.put(entryOf('newer', 2))
  assert.deepEqual(gone, ['old 64', 'old 129', 'old 194'])
})

test('an entry that is too large for all that may be kept pushes no other one out', () => {
  const { memory, gone, keys } = memoryOf(30)
  memory.put(entryOf('a', 10))
  memory.put(entryOf('b', 10))
  memory.put(entryOf('large', 31))
  const b = memory.peek('b')
  assert.ok(b)
  memory.grow(b, 30)
  assert.deepEqual([keys(), gone, memory.bytes], [['a'], ['large', 'b'], 10])
})

test('entries grow and shrink where they are; one that is gone weighs nothing', () => {
  const { memory, gone, keys } = memoryOf(30)
  const [a, b] = [entryOf('a', 10), entryOf('b', 10)]
  memory.put(a)
  memory.put(b)
  memory.grow(b, 15)
  assert.deepEqual([keys(), gone, memory.bytes], [['b'], ['a'], 25])
  memory.grow(b, -20)
  memory.grow(a, 100)
  assert.equal(memory.bytes, 5)
  memory.put(entryOf('b', 7))
  assert.deepEqual([memory.bytes, gone], [7, ['a', 'b']])
  memory.clear()
  assert.deepEqual([memory.bytes, memory.size, gone], [0, 0, ['a', 'b', 'b']])
})

test('a limit of 0 keeps nothing', () => {
  const { memory, gone } = memoryOf(0)
  memory.put(entryOf('a', 1))
  assert.deepEqual([memory.size, memory.bytes, gone], [0, 0, ['a']])
})
