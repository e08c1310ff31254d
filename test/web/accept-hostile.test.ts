/** What must not get in, over real connections where the connection matters: nothing is stored, and the server goes on. */
import assert from 'node:assert/strict'
import express from 'express'
import { Packr } from 'msgpackr'
import { accept } from '../../src/web/index.ts'
import { toNode } from '../../src/web/node.ts'
import { until } from '../support/until.ts'
import { acceptedId, type BodyInit, bodyOf, exchange, isProblem, posted, raw, webTest } from './serving.ts'

const JSON_TYPE = 'application/json'
const PACK_TYPE = 'application/msgpack'
const FORM_TYPE = 'application/x-www-form-urlencoded'

webTest('broken bodies: 400, nothing stored', async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = accept(queue)
  const bad: [BodyInit, string][] = [
    ...['', '{', '{"a":1,}', "{'a':1}", 'NaN', '1 2', '\0', '{"a":"\u0001"}'].map((text): [BodyInit, string] => [
      text,
      JSON_TYPE,
    ]),
    [new Uint8Array([0x22, 0xff, 0x22]), JSON_TYPE],
    [new TextEncoder().encode('{"a":1}').subarray(0, 6), JSON_TYPE],
    [new Uint8Array(Buffer.from('{"a":1}', 'utf16le')), JSON_TYPE],
    [new Uint8Array([0x61, 0x3d, 0xff]), FORM_TYPE],
    ['no boundary', 'multipart/form-data'],
    ['--x\r\nbroken', 'multipart/form-data; boundary=x'],
    ['--x\r\nContent-Disposition: form-data\r\n\r\nno name\r\n--x--', 'multipart/form-data; boundary=x'],
    [Array.from({ length: 1001 }, (_, index) => `f${index}=1`).join('&'), FORM_TYPE],
  ]
  for (const [body, type] of bad) {
    await isProblem(await handler(raw(body, type)), 400, 'PayloadNotDecodable')
  }
  assert.equal((await queue.stats()).counts.waiting, 0)
})

webTest('keys that reach the prototype: 400 in every format, and prototypes stay clean', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const multipart = new FormData()
  multipart.append('__proto__', 'x')
  const packedProto = Buffer.from([0x81, 0xa9, ...Buffer.from('__proto__'), 0x80])
  const bad: [BodyInit, string | undefined][] = [
    ['{"__proto__":{"admin":true}}', JSON_TYPE],
    ['{"a":[{"\\u005f_proto__":1}]}', JSON_TYPE],
    ['{"constructor":{"prototype":{"admin":true}}}', JSON_TYPE],
    ['__proto__=x', FORM_TYPE],
    ['%5F_proto__=x', FORM_TYPE],
    [multipart, undefined],
    [new Uint8Array(packedProto), PACK_TYPE],
  ]
  for (const [body, type] of bad) {
    const document = await isProblem(await handler(raw(body, type)), 400, 'PayloadNotDecodable')
    assert.match(String(document.detail), /__proto__|constructor\.prototype/)
  }
  assert.equal('admin' in {}, false)
  // Names that objects inherit are names like any other.
  await acceptedId(await handler(posted({ constructor: 'Gaudí', toString: 1, hasOwnProperty: null })))
  await acceptedId(await handler(raw('constructor=a&hasOwnProperty=b&hasOwnProperty=c', FORM_TYPE)))
})

webTest(
  'numbers that no double can hold: 400 in JSON, as Express parsed it too; MessagePack carries infinity',
  async ({ pond, serve }) => {
    const queue = pond.queue('q')
    const handler = accept(queue)
    const texts = ['1e999', '-1e999', '[1,[1E400]]', '{"a":{"b":1e309}}', `[1${'0'.repeat(400)}]`]
    const app = express()
    app.use(express.json({ strict: false }))
    app.post('/', toNode(handler))
    const origin = await serve(handler, app)
    const post = (body: string) => fetch(origin, { method: 'POST', headers: { 'content-type': JSON_TYPE }, body })
    for (const text of texts) {
      const document = await isProblem(await handler(raw(text, JSON_TYPE)), 400, 'PayloadNotDecodable')
      assert.match(String(document.detail), /1e999/)
      await isProblem(await post(text), 400, 'PayloadNotDecodable')
    }
    assert.equal((await queue.stats()).counts.waiting, 0)
    const largest = [1.7976931348623157e308, -1e308, 5e-324]
    assert.deepEqual((await pond.job(await acceptedId(await handler(posted(largest)))))?.data, largest)
    assert.deepEqual((await pond.job(await acceptedId(await post(JSON.stringify(largest)))))?.data, largest)
    const packed = new Uint8Array(new Packr().pack([Number.POSITIVE_INFINITY]))
    const { data } = (await pond.job(await acceptedId(await handler(raw(packed, PACK_TYPE))))) ?? {}
    assert.deepEqual(data, [Number.POSITIVE_INFINITY])
  },
)

webTest('deep nesting: 400 beyond 100 levels, whatever the format', async ({ pond }) => {
  const handler = accept(pond.queue('q'), { maxBody: 4_000_000 })
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  await acceptedId(await handler(raw(nested(100), JSON_TYPE)))
  for (const depth of [101, 10_000, 1_900_000]) {
    await isProblem(await handler(raw(nested(depth), JSON_TYPE)), 400, 'PayloadNotDecodable')
  }
  await isProblem(
    await handler(raw(`${'{"a":'.repeat(500)}1${'}'.repeat(500)}`, JSON_TYPE)),
    400,
    'PayloadNotDecodable',
  )
  const packed = (depth: number) => new Uint8Array([...new Uint8Array(depth - 1).fill(0x91), 0x90])
  await acceptedId(await handler(raw(packed(100), PACK_TYPE)))
  for (const depth of [101, 1_000_000]) {
    await isProblem(await handler(raw(packed(depth), PACK_TYPE)), 400, 'PayloadNotDecodable')
  }
})

webTest('MessagePack bombs and what is no MessagePack: 400, no memory taken', async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = accept(queue)
  const bomb = [0xdd, 0x01, 0xff, 0xff, 0xff]
  const bad: number[][] = [
    // A list that says it has four billion items; lists of 33 million each within one another; the same with maps.
    [0xdd, 0xff, 0xff, 0xff, 0xff],
    Array.from({ length: 90 }, () => bomb).flat(),
    [0xdf, 0xff, 0xff, 0xff, 0xff],
    [0xdf, 0x00, 0x00, 0x00, 0x02, 0xa1, 0x61, 0x01],
    // Text and bytes longer than what is there.
    [0xdb, 0xff, 0xff, 0xff, 0xff, 0x61],
    [0xc6, 0x7f, 0xff, 0xff, 0xff],
    [0xd9],
    [0xda, 0x00],
    [0xcf, 0, 0, 0],
    // Nothing, two values, a reserved byte, extensions (of any size, timestamps, the unpacker's own records), no UTF-8, a key that is no text.
    [],
    [0x01, 0x01],
    [0xc1],
    [0xd4, 0x01, 0x00],
    [0xd6, 0xff, 0, 0, 0, 0],
    [0xc7, 0x01, 0x72, 0x00],
    [0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 0x01],
    [0xa1, 0xff],
    [0x81, 0x01, 0x01],
    [0x81, 0xc4, 0x01, 0x61, 0x01],
  ]
  const before = process.memoryUsage().rss
  for (const bytes of bad) {
    await isProblem(await handler(raw(new Uint8Array(bytes), PACK_TYPE)), 400, 'PayloadNotDecodable')
  }
  assert.ok(process.memoryUsage().rss - before < 100_000_000)
  assert.equal((await queue.stats()).counts.waiting, 0)
})

webTest('any bytes at all as MessagePack: understood as the unpacker would, or 400', async ({ pond }) => {
  const handler = accept(pond.queue('q'), { data: async (_, body) => [await body()] })
  let seed = 7
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed / 2_147_483_648
  }
  const packr = new Packr({ useRecords: false })
  for (let times = 0; times < 3000; times++) {
    const good = packr.pack({ a: [1, 'ü', null, { b: Buffer.from([1]) }], n: 2n ** 60n, f: 1.5 })
    const bytes =
      times % 2 === 0 ? Uint8Array.from({ length: 1 + random() * 20 }, () => random() * 256) : new Uint8Array(good)
    if (times % 2 === 1) bytes[Math.floor(random() * bytes.length)] = random() * 256
    const response = await handler(raw(bytes, PACK_TYPE))
    if (response.status === 202) await pond.job(await acceptedId(response))
    else await isProblem(response, 400, 'PayloadNotDecodable')
  }
})

webTest('types that are not taken: 415 with those that are', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const types = [
    'text/plain',
    'application/xml',
    'json',
    'a/b/c',
    'application/json; charset=utf-16',
    `x/${'y'.repeat(5000)}`,
  ]
  for (const type of types) {
    const response = await handler(raw('{}', type))
    assert.match(response.headers.get('accept-post') ?? '', /application\/json/)
    await isProblem(response, 415)
  }
  await isProblem(await handler(raw(new TextEncoder().encode('{}'))), 415)
  await isProblem(await handler(raw(null)), 415)
  const zipped = await handler(raw('{}', JSON_TYPE, { 'content-encoding': 'gzip' }))
  assert.equal(zipped.headers.get('accept-encoding'), 'identity')
  await isProblem(zipped, 415)
  const form = new FormData()
  form.append('file', new Blob(['x']), 'x.txt')
  await isProblem(await handler(raw(form)), 415)
})

webTest('a body over the limit: 413, whether it says so or not', async ({ pond, serve }) => {
  const queue = pond.queue('q')
  const handler = accept(queue, { maxBody: 1000 })
  await acceptedId(await handler(posted('x'.repeat(998))))
  await isProblem(await handler(posted('x'.repeat(999))), 413, 'PayloadTooLarge')
  const origin = await serve(handler)
  const headers = { 'content-type': JSON_TYPE }
  const big = new Uint8Array(20_000_000)
  await isProblem(await fetch(origin, { method: 'POST', headers, body: big }), 413, 'PayloadTooLarge')
  const chunks = new Blob([big]).stream()
  await isProblem(
    await fetch(origin, { method: 'POST', headers, body: chunks, duplex: 'half' }),
    413,
    'PayloadTooLarge',
  )
  // By what it says of itself, before any of it has come.
  const announced = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n'
  assert.match(await exchange(origin, announced, '\r\n\r\n'), /^HTTP\/1\.1 413 /)
  await acceptedId(await fetch(origin, { method: 'POST', headers, body: '"fits"' }))
  assert.equal((await queue.stats()).counts.waiting, 2)
})

webTest("a payload over the pond's limit: 413, too", async ({ pond }) => {
  const handler = accept(pond.queue('q'), { maxBody: 4_000_000 })
  await isProblem(await handler(posted('x'.repeat(2_000_000))), 413, 'PayloadTooLarge')
})

webTest('a body that does not come: 408, and the connection is given up', async ({ pond, serve }) => {
  const queue = pond.queue('q')
  const origin = await serve(accept(queue, { bodyTimeout: 50 }))
  const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`
  for (const start of ['Content-Length: 100\r\n\r\n{"a":', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\n']) {
    const heard = await exchange(origin, head + start)
    assert.match(heard, /^HTTP\/1\.1 408 /)
    assert.match(heard, /did not come within 50 ms/)
  }
  assert.equal((await queue.stats()).counts.waiting, 0)
})

webTest('clients that hang up midway: nothing stored, the server goes on', async ({ pond, serve }) => {
  const queue = pond.queue('q')
  let answers = 0
  const handler = accept(queue, { onError: (error) => assert.fail(String(error)) })
  const origin = await serve(async (request) => {
    const response = await handler(request)
    answers++
    return response
  })
  const part =
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n{"a":'
  await Promise.all(Array.from({ length: 200 }, () => exchange(origin, part, '100 Continue')))
  await until(() => answers === 200)
  assert.equal((await queue.stats()).counts.waiting, 0)
  await acceptedId(await fetch(origin, { method: 'POST', headers: { 'content-type': JSON_TYPE }, body: '1' }))
})

webTest('request lines and headers that try their luck', async ({ pond, serve }) => {
  const origin = await serve(accept(pond.queue('q')))
  const body = 'Content-Type: application/json\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1'
  const statusOf = async (start: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(await exchange(origin, start + body))?.[1])
  assert.equal(await statusOf('POST / HTTP/1.1\r\nHost: example.org:8080\r\n'), 202)
  assert.equal(await statusOf('POST //evil.example/x HTTP/1.1\r\nHost: [::1]:80\r\n'), 202)
  assert.equal(await statusOf('POST http://evil.example/x HTTP/1.1\r\nHost: x\r\n'), 400)
  assert.equal(await statusOf('POST /%00/../..//%2e%2e HTTP/1.1\r\nHost: x\r\n'), 400)
  for (const host of ['a b', 'a/b', 'user@host', 'x?y', 'x#y', 'a:123456', 'a:b', `${'x'.repeat(256)}`]) {
    assert.equal(await statusOf(`POST / HTTP/1.1\r\nHost: ${host}\r\n`), 400, host)
  }
  assert.equal(await statusOf('POST * HTTP/1.1\r\nHost: x\r\n'), 400)
  const traced = await exchange(origin, 'TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  assert.match(traced, /^HTTP\/1\.1 405 [\s\S]*\r\nallow: POST\r\n/i)
  assert.equal(await statusOf(`POST / HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(20_000)}\r\n`), 431)
  assert.equal(await statusOf('POST / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n'), 400)
  const twice = `POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n`
  assert.equal(await statusOf(twice), 400)
})

webTest('a body that has been read before: 400', async ({ pond }) => {
  const request = posted(1)
  await request.text()
  await isProblem(await accept(pond.queue('q'))(request), 400, 'PayloadNotDecodable')
})

webTest('the answer says nothing of what the request did not send', async ({ pond }) => {
  const response = await accept(pond.queue('internal-name'))(posted({ secret: 1 }))
  assert.deepEqual(Object.keys(await bodyOf(response)).sort(), ['id', 'state'])
})
