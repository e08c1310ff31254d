/** Lines of a job's log: written, read, bounded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { logLine, readLogLine, UnsentLog, withLines } from '../../src/values/jobs/job-log.ts'

const PLACE = { at: 1_767_225_600_000, attempt: 2, n: 7 }
const line = (message: unknown, fields?: unknown) => readLogLine(logLine(PLACE, message, fields))

test('a line is read as it was written', () => {
  const { at, ...rest } = line('sent "it"\nto é🌊\0', { to: 'a@example.org', n: 1, none: null, list: [1] })
  assert.equal(at?.getTime(), PLACE.at)
  const fields = { to: 'a@example.org', n: 1, none: null, list: [1] }
  assert.deepEqual(rest, { attempt: 2, message: 'sent "it"\nto é🌊\0', fields, cut: false })
  assert.ok(!logLine(PLACE, 'two\nlines').includes('\n'))
})

test('what cannot be told is cut, and nothing throws', () => {
  const circular: Record<string, unknown> = {}
  circular.self = circular
  const throwing = {
    get name() {
      throw new Error('no')
    },
  }
  for (const fields of [circular, throwing, { text: 'x'.repeat(5000) }, 'text', 7]) {
    assert.deepEqual([line('m', fields).fields, line('m', fields).cut], [undefined, true])
  }
  const long = line('m'.repeat(3000), { kept: true })
  assert.deepEqual([long.message.length, long.fields, long.cut], [2001, { kept: true }, true])
  assert.equal(
    line({
      toString: () => {
        throw new Error('no')
      },
    }).message,
    'a message that cannot be shown',
  )
  assert.equal(line(Symbol('s')).message, 'Symbol(s)')
})

test('errors, big integers and halves of surrogate pairs become text', () => {
  const { fields, message } = line('a\ud83d', { error: new RangeError('too far'), big: 2n ** 70n, '\udc00': '\\ud800' })
  assert.equal(message, 'a\ufffd')
  assert.deepEqual(fields, { error: 'RangeError: too far', big: '1180591620717411303424', '\ufffd': '\\ud800' })
})

test('a line that cannot be read is its text', () => {
  for (const text of ['', 'plain', '{', '[]', 'null', '{"at":"now","attempt":1,"message":"m"}']) {
    assert.deepEqual(readLogLine(text), { at: null, attempt: null, message: text, fields: undefined, cut: false })
  }
  assert.equal(readLogLine('{"at":1e300,"attempt":1,"message":"m"}').at?.getTime(), 8_640_000_000_000_000)
})

test('a log has no line twice, at most 100 of them, and 64 KiB', () => {
  assert.deepEqual(withLines(['a', 'b'], ['b', 'c', 'c']), ['a', 'b', 'c'])
  const many = Array.from({ length: 150 }, (_, n) => String(n))
  assert.deepEqual(withLines([], many), many.slice(50))
  const large = ['a', 'b', 'c'].map((letter) => letter.repeat(32_767))
  assert.deepEqual(withLines([], large), large.slice(1))
  assert.deepEqual(withLines(['x'], ['é'.repeat(32_768)]), [])
})

test('lines are kept until a call that carried them is answered', () => {
  const log = new UnsentLog()
  const messages = () => log.lines.map((text) => readLogLine(text).message)
  for (const message of ['a', 'b']) log.add(1, 0, message, undefined)
  const { count } = log
  log.add(1, 0, 'c', undefined)
  log.sent(count)
  log.sent(0)
  assert.deepEqual(messages(), ['c'])
  for (let n = 0; n < 1000; n++) log.add(1, 0, String(n), { text: 'x'.repeat(n === 999 ? 3000 : 0) })
  assert.deepEqual([log.lines.length, messages()[0], messages()[99]], [100, '900', '999'])
  log.sent(log.count)
  assert.ok(log.isEmpty)
})
