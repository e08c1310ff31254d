import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isMillpondError } from '../../src/index.ts'
import { inOrder } from '../../src/pond/push/job-order.ts'

const circleOf = (parents: number[][]): string => {
  try {
    inOrder(parents)
  } catch (error) {
    if (isMillpondError(error, 'GraphCycle')) return error.message.replace(/^.*places: /, '')
    throw error
  }
  return assert.fail('there is no circle')
}

test('a list that is in order stays as it is; else parents come first', () => {
  assert.deepEqual(inOrder([[], [0], [], [1, 2]]), [0, 1, 2, 3])
  assert.deepEqual(inOrder([[2], [], [1], []]), [1, 3, 2, 0])
  assert.deepEqual(inOrder([]), [])
})

test('a circle is named, and not what waits for it', () => {
  assert.equal(circleOf([[1], [2], [1]]), '1 after 2 after 1')
  assert.equal(circleOf([[0]]), '0 after 0')
  const long = Array.from({ length: 100_000 }, (_, at) => [(at + 1) % 100_000])
  assert.match(circleOf(long), /^0 after 1 after .* after 19, and 99981 more$/)
})

test('any graph without a circle is put in order, and any with one is refused', () => {
  const graphs = fc.array(fc.array(fc.nat(11), { maxLength: 3 }), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(graphs, (parents) => {
      let order: number[]
      try {
        order = inOrder(parents)
      } catch (error) {
        assert.ok(isMillpondError(error, 'GraphCycle'))
        const circle = error.message
          .replace(/^.*places: /, '')
          .split(' after ')
          .map(Number)
        assert.equal(circle.at(0), circle.at(-1))
        for (const [at, place] of circle.slice(0, -1).entries())
          assert.ok(parents[place]?.includes(circle[at + 1] ?? -1))
        return
      }
      const at = new Map(order.map((place, index) => [place, index]))
      assert.equal(at.size, parents.length)
      for (const [place, own] of parents.entries()) {
        for (const parent of own) assert.ok((at.get(parent) ?? 0) < (at.get(place) ?? 0))
      }
    }),
  )
})
