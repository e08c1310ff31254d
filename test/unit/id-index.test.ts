/** The memory store's index of ids, held against a plain map through every order in which ids may come. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { IdIndex, type Indexed } from '../../src/stores/memory/id-index.ts'

class Entry implements Indexed<Entry> {
  readonly id: string
  range: Indexed<Entry>['range'] = null

  constructor(n: number) {
    this.id = idOf(n)
  }
}

const idOf = (n: number): string => `019b76da-a800-7000-8000-${n.toString(16).padStart(12, '0')}`
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

class Both {
  readonly index = new IdIndex<Entry>()
  readonly known = new Map<number, Entry>()

  add(n: number): void {
    if (this.known.has(n)) return
    const entry = new Entry(n)
    this.index.add(entry)
    this.known.set(n, entry)
  }

  remove(n: number): void {
    const entry = this.known.get(n)
    if (entry === undefined) return
    this.index.remove(entry)
    this.known.delete(n)
  }

  check(numbers: Iterable<number>): void {
    for (const n of numbers) assert.equal(this.index.get(idOf(n)), this.known.get(n), `id ${n}`)
  }
}

describe('index of ids', () => {
  test('rising ids over many maps: each is found, and unknown ones are not', () => {
    const both = new Both()
    for (const n of upTo(3_000)) both.add(2 * n)
    both.check(upTo(6_100))
  })

  test('an entry is found until it is removed, first come first gone', () => {
    const both = new Both()
    for (const n of upTo(3_000)) {
      both.add(n)
      both.remove(n - 700)
    }
    both.check(upTo(3_000))
  })

  test('ids of a map that was removed are found when they come again', () => {
    const both = new Both()
    for (const n of upTo(3_000)) both.add(n)
    for (const n of [...upTo(600), ...upTo(600).map((n) => 1_000 + n)]) both.remove(n)
    for (const n of [3, 513, 1_200, 1_100]) both.add(n)
    both.check(upTo(3_001))
  })

  test('ids in any order, added and removed at random', () => {
    const step = fc.record({ add: fc.boolean(), n: fc.nat(3_000) })
    fc.assert(
      fc.property(fc.array(step, { minLength: 500, maxLength: 5_000 }), (steps) => {
        const both = new Both()
        for (const { add, n } of steps) {
          if (add) both.add(n)
          else both.remove(n)
        }
        both.check(upTo(3_001))
      }),
      { numRuns: 30 },
    )
  })

  test('after a clear nothing is found, and what is added is', () => {
    const both = new Both()
    for (const n of upTo(1_500)) both.add(n)
    both.index.clear()
    both.known.clear()
    both.check(upTo(1_500))
    for (const n of [7, 3, 1_499]) both.add(n)
    both.check(upTo(1_500))
  })
})
