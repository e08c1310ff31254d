/** JSON whose integers arrive as they were written, or not at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { parseJson } from '../../src/web/json.ts'

const refusedAt = (text: string): string | undefined => {
  try {
    parseJson(text)
    return undefined
  } catch (error) {
    assert.ok(isMillpondError(error, 'PayloadNotEncodable'), String(error))
    assert.ok(!error.message.includes('9007199254740993'), 'the message shows the payload')
    return error.issues?.[0]?.path
  }
}

test('integers that a number would change are refused, with their path', () => {
  assert.equal(refusedAt('9007199254740993'), '')
  assert.equal(refusedAt('-9007199254740993'), '')
  assert.equal(refusedAt('{"a":[1,{"id":9007199254740993}]}'), 'a.1.id')
  assert.equal(refusedAt('[9007199254740992,18446744073709551615]'), '1')
  assert.equal(refusedAt(' [ "\\"", "\\\\", 1234567890123456789 ] '), '2')
  assert.equal(refusedAt('{"a":"x","b":"\\\\\\"9","c":12345678901234567}'), 'c')
})

test('all other texts are as JSON.parse reads them', () => {
  const texts = [
    ...['9007199254740991', '-9007199254740991', '9007199254740992', '10000000000000000', '100000000000000000000'],
    ...['"9007199254740993"', '{"9007199254740993":"1"}', '["\\"9007199254740993","9007199254740993\\\\",1]'],
    ...['3.141592653589793238', '1e300', '0.12345678901234567', '-1.2345678901234567e-12', '12345678901234567.5'],
    ...['{"a":1,"b":[true,null,"é🌊"]}', '"1234567890123456 \\ud83c\\udf0a"', '{"a":"1234567890123456789"}'],
  ]
  for (const text of texts) assert.deepEqual(parseJson(text), JSON.parse(text), text)
})

test('a text of many quotes and digits is read in a time that grows with its length', () => {
  const text = JSON.stringify(Array.from({ length: 50_000 }, (_, at) => `${'\\"'.repeat(8)}1234567890123456${at}`))
  assert.deepEqual(parseJson(text), JSON.parse(text))
  assert.deepEqual(
    parseJson(`"${'\\\\'.repeat(500_000)}1234567890123456789"`),
    `${'\\'.repeat(500_000)}1234567890123456789`,
  )
})
