/** Payloads on their way to the page: nothing is changed, too much is cut, and what may not be seen is not there. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { shownValue } from '../../src/dashboard/payload.ts'
import { Redaction, redactedPaths } from '../../src/dashboard/redact.ts'
import { Millpond, type OpenOptions } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { startDashboard } from './fixture.ts'

const hiding = (...paths: string[]) => new Redaction(redactedPaths(paths))
const NOTHING = hiding()

test('values are shown as what they are', () => {
  for (const [value, shown] of [
    [null, null],
    [true, true],
    [1.5, 1.5],
    [-0, ['n', '-0']],
    [Number.NaN, ['n', 'NaN']],
    [Number.POSITIVE_INFINITY, ['n', 'Infinity']],
    [9007199254740993n, ['i', '9007199254740993']],
    ['text', 'text'],
    ['\ud800', '\ufffd'],
    [undefined, ['u']],
    [new Date(0), ['d', '1970-01-01T00:00:00.000Z']],
    [new Uint8Array([1, 255]), ['b', 'Af8=', 2]],
    [
      [1, [2]],
      ['a', [1, ['a', [2], 0]], 0],
    ],
    [{ a: { b: 1 } }, ['o', [['a', ['o', [['b', 1]], 0]]], 0]],
    [JSON.parse('{"__proto__":1}'), ['o', [['__proto__', 1]], 0]],
  ] as const) {
    assert.deepEqual(shownValue(value, NOTHING), shown)
  }
})

test('large values are cut, and say by how much', () => {
  assert.deepEqual(shownValue('x'.repeat(30_000), NOTHING), ['s', 'x'.repeat(20_000), 30_000])
  const many = shownValue(Array(1500).fill(0), NOTHING)
  assert.deepEqual(Array.isArray(many) && [many[0], many[2]], ['a', 500])
  const wide = shownValue(Array(900).fill(Array(900).fill(0)), NOTHING)
  assert.ok(JSON.stringify(wide).length < 100_000)
  const bytes = shownValue(new Uint8Array(10_000), NOTHING)
  assert.ok(Array.isArray(bytes) && bytes[2] === 10_000 && String(bytes[1]).length < 6000)
})

test('redacted paths go through arrays, stars and any depth', () => {
  const value = { card: { number: 1, name: 2 }, list: [{ password: 3, deep: { password: 4 } }], password: 5 }
  const digits = (...paths: string[]) =>
    [1, 2, 3, 4, 5].filter((n) => new RegExp(`",${n}\\]`).test(JSON.stringify(shownValue(value, hiding(...paths)))))
  assert.deepEqual(digits(), [1, 2, 3, 4, 5])
  assert.deepEqual(digits('card.number'), [2, 3, 4, 5])
  assert.deepEqual(digits('card'), [3, 4, 5])
  assert.deepEqual(digits('card.*'), [3, 4, 5])
  assert.deepEqual(digits('list.password'), [1, 2, 4, 5])
  assert.deepEqual(digits('**.password'), [1, 2])
  assert.deepEqual(digits('list.**.password'), [1, 2, 5])
  assert.deepEqual(digits('**'), [])
})

test('sealed and damaged payloads are shown as that, and the rest of the job with them', async (t) => {
  const url = `sqlite:${join(scratch(t), 'jobs.db')}?sync=normal`
  const open = async (options: OpenOptions) => {
    const pond = await Millpond.open(url, options)
    after(t, () => pond.close({ timeout: 100 }))
    return pond
  }
  const sealing = await open({ seal: { keys: [{ id: 'one', key: randomBytes(32) }] } })
  const { id } = await sealing.queue('sealed').push({ secret: 'canary' }, { key: 'k' })
  const plain = await open({})
  const without = await startDashboard(t, plain)
  const { body, text } = await without.ask('job', { id })
  assert.deepEqual([body.data.state, body.key], ['sealed', 'k'])
  assert.doesNotMatch(text, /canary/)
  const withKey = await startDashboard(t, sealing)
  assert.match((await withKey.ask('job', { id })).text, /canary/)
})
