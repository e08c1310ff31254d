/** `coalesceResponses`: never one user's answer to another. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CoalesceResponsesOptions } from '../../src/web/coalesce.ts'
import { type Headers, served, settle, texts } from './coalesce-fixture.ts'

describe('requests that share nothing', () => {
  /** Sends it thrice at once, and says how often the handler ran. */
  const runsOf = async (init: RequestInit & { headers?: Headers }, options?: CoalesceResponsesOptions) => {
    const server = served({ ttl: '1h', ...options })
    const all = [1, 2, 3].map(() => server.send('/', init))
    const { runs } = server
    for (let index = 0; index < runs; index++) server.answer(index, init.method === 'HEAD' ? null : undefined)
    await Promise.all(all)
    assert.equal(server.share.stats().alone, runs === 1 ? 0 : runs)
    return runs
  }

  test('those that name a user', async () => {
    for (const name of ['Authorization', 'Cookie', 'Proxy-Authorization', 'X-Api-Key', 'X-Auth-Token']) {
      assert.equal(await runsOf({ headers: { [name]: 'a' } }), 3, name)
      assert.equal(await runsOf({ headers: { [name]: '' } }), 3, `${name}, though it be empty`)
    }
    assert.equal(await runsOf({ headers: { 'x-user': 'ada' } }), 1)
    assert.equal(await runsOf({ headers: { 'x-user': 'ada' } }, { personal: ['X-User'] }), 3)
  })

  test('a key of the service does not change that unless it says which headers it covers', async () => {
    const headers = { authorization: 'a', cookie: 'b' }
    assert.equal(await runsOf({ headers }, { key: () => 'a b' }), 3)
    assert.equal(await runsOf({ headers }, { key: () => ({ key: 'a b', covers: ['Cookie'] }) }), 3)
    assert.equal(await runsOf({ headers }, { key: () => ({ key: 'a b', covers: ['Cookie', 'authorization'] }) }), 1)
    assert.equal(await runsOf({ headers: {} }, { key: () => ({ key: 'a', covers: ['cookie'] }) }), 1)
  })

  test('with such a key users are apart, each with a flight of its own', async () => {
    const server = served({
      key: ({ url, headers }) => ({ key: `${headers.get('authorization')} ${url}`, covers: ['authorization'] }),
    })
    const all = ['ada', 'bob', 'ada'].map((authorization) => server.send('/', { headers: { authorization } }))
    assert.equal(server.runs, 2)
    server.answer(0, 'for ada')
    server.answer(1, 'for bob')
    assert.deepEqual(await texts(all), ['for ada', 'for bob', 'for ada'])
  })

  test('those that ask for a part, a comparison, another protocol, a stream or something fresh', async () => {
    const apart: Headers[] = [
      { range: 'bytes=0-9' },
      { 'if-none-match': '"a"' },
      { 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      { 'if-match': '*' },
      { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      { 'if-range': '"a"' },
      { upgrade: 'websocket' },
      { 'x-http-method-override': 'DELETE' },
      { 'content-length': '2' },
      { 'transfer-encoding': 'chunked' },
      { accept: 'text/html, Text/Event-Stream' },
      { 'cache-control': 'no-cache' },
      { 'cache-control': 'max-age=60,No-Store' },
      { 'cache-control': 'max-age=0' },
      { pragma: 'no-cache' },
    ]
    for (const headers of apart) assert.equal(await runsOf({ headers }), 3, JSON.stringify(headers))
    assert.equal(await runsOf({ headers: { 'cache-control': 'max-age=03' } }), 1)
  })

  test('those of other methods than GET and HEAD', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
      assert.equal(await runsOf({ method }), 3, method)
    }
    assert.equal(await runsOf({ method: 'HEAD' }), 1)
  })
})

describe('answers that are not shared', () => {
  const lasting: [string, ResponseInit][] = [
    ['a cookie', { headers: { 'set-cookie': 'session=1' } }],
    ['private', { headers: { 'cache-control': 'private' } }],
    ['private among others', { headers: { 'cache-control': 'max-age=60, Private' } }],
    ['private in part', { headers: { 'cache-control': 'private="set-cookie", max-age=60' } }],
    ['no-store', { headers: { 'cache-control': 'no-store' } }],
    ['no-cache', { headers: { 'cache-control': 'public,no-cache' } }],
    ['no-cache of old', { headers: { pragma: 'no-cache' } }],
    ['Vary: *', { headers: { vary: 'accept, *' } }],
    ['too many names in Vary', { headers: { vary: Array.from({ length: 17 }, (_, index) => `x-${index}`).join() } }],
    ['a Vary that names no header', { headers: { vary: 'accept, Accept-Encoding User-Agent' } }],
    ['events', { headers: { 'content-type': 'text/event-stream; charset=utf-8' } }],
    ['parts without end', { headers: { 'content-type': 'multipart/x-mixed-replace; boundary=b' } }],
    ['lines of JSON', { headers: { 'content-type': 'application/x-ndjson' } }],
    ['one that asks not to be buffered', { headers: { 'x-accel-buffering': 'no' } }],
    ['one that says it is too large', { headers: { 'content-length': '1048577' } }],
  ]
  const single: [string, ResponseInit][] = [401, 403, 407, 421, 429].map((status) => [`a ${status}`, { status }])

  for (const [what, init] of lasting) {
    test(`${what}: whoever waited runs its own, and who comes later does not wait`, async () => {
      const server = served({ ttl: '1h' })
      const all = [1, 2, 3].map(() => server.send('/'))
      assert.equal(server.runs, 1)
      server.answer(0, undefined, init)
      await settle()
      assert.equal(server.runs, 3, 'both run at once, and not one after the other')
      all.push(server.send('/'))
      assert.equal(server.runs, 4)
      for (const index of [3, 2, 1]) server.answer(index, undefined, init)
      assert.deepEqual((await texts(all)).sort(), ['answer 0', 'answer 1', 'answer 2', 'answer 3'])
      assert.equal(server.share.stats().kept, 0)
    })
  }

  for (const [what, init] of single) {
    test(`${what} may be about the one who asks: the others run on, and share what they may`, async () => {
      const server = served({ ttl: '1h' })
      const all = [1, 2, 3].map(() => server.send('/'))
      server.answer(0, undefined, init)
      await settle()
      assert.equal(server.runs, 2, 'one of them runs for both')
      server.answer(1)
      assert.deepEqual(await texts(all), ['answer 0', 'answer 1', 'answer 1'])
    })
  }

  test('those who are told no one after another run alone in the end, and do not queue up for it', async () => {
    const server = served()
    const all = Array.from({ length: 100 }, () => server.send('/'))
    for (let index = 0; index < 3; index++) {
      assert.equal(server.runs, index + 1)
      server.answer(index, undefined, { status: 429 })
      await settle()
    }
    assert.equal(server.runs, 100)
    for (let index = 3; index < 100; index++) server.answer(index, undefined, { status: 429 })
    assert.equal(new Set(await texts(all)).size, 100)
  })

  test('that an answer was not shareable is forgotten after a while', async (t) => {
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const server = served()
    const first = server.send('/')
    server.answer(0, undefined, { headers: { 'cache-control': 'private' } })
    await first
    now += 10_000
    const all = [server.send('/'), server.send('/')]
    server.answer(1)
    assert.deepEqual(await texts(all), ['answer 1', 'answer 1'])
  })

  test('a thousand who must run alone begin in steps, with turns of the event loop between them', async () => {
    const server = served()
    const all = Array.from({ length: 1000 }, () => server.send('/'))
    server.answer(0, undefined, { headers: { 'cache-control': 'private' } })
    const grown: number[] = []
    while (server.runs < 1000) {
      const before = server.runs
      await new Promise((resolve) => setImmediate(resolve))
      grown.push(server.runs - before)
    }
    assert.ok(Math.max(...grown) <= 64, `at most ${Math.max(...grown)} in one turn`)
    for (let index = 1; index < 1000; index++) server.answer(index)
    assert.equal(new Set(await texts(all)).size, 1000)
  })
})

describe('large and endless bodies', () => {
  /** A body whose pieces the test sends. */
  const piecewise = () => {
    let sink: ReadableStreamDefaultController<Uint8Array> | undefined
    let cancelled: unknown
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        sink = controller
      },
      cancel: (reason) => {
        cancelled = reason
      },
    })
    const piece = (text: string) => sink?.enqueue(new TextEncoder().encode(text))
    return { body, piece, end: () => sink?.close(), cancelled: () => cancelled }
  }

  test('a body over the bound streams to the one who ran it, and the others run their own', async () => {
    const server = served({ maxBody: 10 })
    const all = [server.send('/'), server.send('/')]
    const { body, piece, end } = piecewise()
    server.answer(0, body, { status: 404, headers: { 'x-own': 'kept' } })
    piece('0123456789')
    await settle()
    assert.equal(server.runs, 1, 'it may still end here')
    piece('ab')
    const first = await all[0]
    assert.deepEqual([first?.status, first?.headers.get('x-own')], [404, 'kept'])
    await settle()
    assert.equal(server.runs, 2)
    piece('cd')
    end()
    server.answer(1, 'short')
    assert.deepEqual(await texts(all.map(async (response) => response)), ['0123456789abcd', 'short'])
  })

  test('a body of exactly the bound is shared', async () => {
    const server = served({ maxBody: 10 })
    const all = [server.send('/'), server.send('/')]
    server.answer(0, '0123456789')
    assert.deepEqual(await texts(all), ['0123456789', '0123456789'])
  })

  test('who stops reading such a body stops what makes it', async () => {
    const server = served({ maxBody: 1 })
    const response = server.send('/')
    const { body, piece, cancelled } = piecewise()
    server.answer(0, body)
    piece('ab')
    await (await response).body?.cancel('enough')
    assert.equal(cancelled(), 'enough')
  })

  test('server-sent events reach the one who asked as they are sent', async () => {
    const server = served()
    const response = server.send('/')
    const { body, piece, end } = piecewise()
    server.answer(0, body, { headers: { 'content-type': 'text/event-stream' } })
    const reader = (await response).body?.getReader()
    piece('data: 1\n\n')
    assert.equal(new TextDecoder().decode((await reader?.read())?.value), 'data: 1\n\n')
    end()
    assert.equal((await reader?.read())?.done, true)
  })
})
