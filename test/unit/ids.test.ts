import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { checkId, newId } from '../../src/values/jobs/ids.ts'
import { coded } from './suite.ts'
import { vectors } from './vectors.ts'

interface Vectors {
  good: { about: string; id: string; kept: string }[]
  bad: { about: string; id: unknown }[]
  made: { about: string; id: string; version: number; variant: number; ms: number }[]
}
const { good, bad, made } = vectors<Vectors>('ids')

const versionOf = (id: string) => Number.parseInt(id.charAt(14), 16)
const variantOf = (id: string) => Number.parseInt(id.charAt(19), 16) >> 2
const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

/** Makes ids by a clock of the test's own, which begins past every time used before, as ids must not fall. */
let latest = Date.now() + 3_600_000
function byClock(run: (clock: { now: number }) => void): void {
  latest += 1_000_000_000
  const clock = { now: latest }
  // Not the test runner's mock, which keeps a record of every call.
  const { now } = Date
  Date.now = () => clock.now
  try {
    run(clock)
  } finally {
    Date.now = now
  }
}

function assertRising(ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    if (index > 0 && !(id > (ids[index - 1] ?? ''))) assert.fail(`${id} is not above ${ids[index - 1]}`)
  }
}

describe('ids', () => {
  for (const { about, id, kept } of good) {
    test(`taken: ${about}`, () => assert.equal(checkId(id), kept))
  }
  for (const { about, id } of bad) {
    test(`refused: ${about}`, () => assert.throws(() => checkId(id), coded('InvalidName', /UUID/)))
  }
  for (const { about, id, version, variant, ms } of made) {
    test(`holds: ${about}`, () => {
      assert.deepEqual([versionOf(id), variantOf(id), timeOf(id)], [version, variant, ms])
      assert.equal(checkId(id), id)
    })
  }

  test('new ones hold version 7, the variant and the time', () => {
    for (let n = 0; n < 2000; n++) {
      const before = Date.now()
      const id = newId()
      const after = Date.now()
      assert.equal(checkId(id), id)
      assert.deepEqual([versionOf(id), variantOf(id)], [7, 2])
      assert.ok(timeOf(id) >= before && timeOf(id) <= after, `${timeOf(id)} from ${before} to ${after}`)
    }
  })

  test('a hundred thousand rise strictly', () => {
    assertRising(Array.from({ length: 100_000 }, newId))
  })

  test('they rise while the clock stands still', () => {
    byClock((clock) => {
      const ids = Array.from({ length: 100_000 }, newId)
      assertRising(ids)
      assert.equal(timeOf(ids[0] ?? ''), clock.now)
      assert.equal(new Set(ids.map((id) => id.slice(24))).size > 99_000, true, 'their random part differs')
    })
  })

  test('they rise when the clock steps back, and follow it once it has caught up', () => {
    byClock((clock) => {
      const ids: string[] = []
      const start = clock.now
      for (const step of [0, 5, -1000, -999, 1, 4, 5, 6, -86_400_000, 7]) {
        clock.now = start + step
        for (let n = 0; n < 10_000; n++) ids.push(newId())
      }
      assertRising(ids)
      assert.equal(timeOf(ids.at(-1) ?? ''), start + 7)
    })
  })

  test('at the first moment of all, as under a mocked clock, they are well-formed', async () => {
    const mocked = mock.method(Date, 'now', () => 0)
    try {
      // A module of its own: the first id of a process.
      const url = new URL('../../src/values/jobs/ids.ts?first', import.meta.url).href
      const fresh: { newId: () => string } = await import(url)
      const id = fresh.newId()
      assert.equal(checkId(id), id)
      assert.equal(timeOf(id), 0)
    } finally {
      mocked.mock.restore()
    }
  })
})
