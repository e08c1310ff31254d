/** `coalesceResponses`: never one user's answer to another. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { CoalesceResponsesOptions } from '../../src/web/coalesce.ts'
import { DIVIDING, UNKEYED, UNKEYED_PREFIXES } from '../../src/web/request-rules.ts'
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

  /** Of servers, proxies and services that tell by them who asks. */
  const IDENTITIES = [
    ...['Authorization', 'Cookie', 'Proxy-Authorization', 'X-Api-Key', 'apikey', 'X-Auth-Token', 'X-Access-Token'],
    ...['X-Auth-Request-User', 'X-Auth-Request-Email', 'X-Forwarded-User', 'X-Forwarded-Email', 'Remote-User'],
    ...['X-Remote-User', 'X-Goog-IAP-JWT-Assertion', 'X-Goog-Authenticated-User-Email', 'X-Amzn-Oidc-Data'],
    ...['X-Amzn-Oidc-Identity', 'Cf-Access-Jwt-Assertion', 'Cf-Access-Authenticated-User-Email'],
    ...['X-MS-Client-Principal', 'X-MS-Client-Principal-Name', 'X-Forwarded-Client-Cert', 'SSL-Client-Verify'],
    ...['X-Session-Id', 'X-Tenant', 'X-Tenant-Id', 'X-CSRF-Token', 'X-Amz-Security-Token', 'Baggage', 'From', 'X-1'],
  ]

  test('those with a header that may name a user, whatever its name', async () => {
    for (const name of IDENTITIES) {
      assert.equal(await runsOf({ headers: { [name]: 'a' } }), 3, name)
      assert.equal(await runsOf({ headers: { [name]: '' } }), 3, `${name}, though it be empty`)
    }
  })

  test('any name that is not on the list', async () => {
    const known = new Set([...UNKEYED, ...DIVIDING, 'origin', 'host'])
    const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789-_']
    const name = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''))
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          name,
          fc.constantFrom(...known).map((one) => `${one}-user`),
          fc.constantFrom(...known).map((one) => `x-${one}`),
        ),
        async (one) => {
          if (known.has(one) || UNKEYED_PREFIXES.some((start) => one.startsWith(start))) return
          assert.equal(await runsOf({ headers: { [one]: 'a' } }), 3, one)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('what a browser, or a proxy on the way, sends of everyone is shared', async () => {
    const everyones: Headers = {
      accept: 'text/html,*/*;q=0.8',
      'accept-encoding': 'gzip, br',
      'accept-language': 'en',
      'cache-control': 'max-age=03',
      connection: 'keep-alive',
      referer: 'https://a.example/',
      'sec-ch-ua-platform': '"Linux"',
      'sec-fetch-site': 'same-origin',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'upgrade-insecure-requests': '1',
      'user-agent': 'Mozilla/5.0',
      via: '1.1 proxy',
      'x-forwarded-for': '192.0.2.60',
      'x-forwarded-host': 'a.example',
      'x-forwarded-proto': 'https',
      'x-real-ip': '192.0.2.60',
      'x-request-id': '7b',
    }
    assert.equal(await runsOf({ headers: everyones }), 1)
  })

  test('a service names the headers that its answers differ by, or do not depend on, and those that name users', async () => {
    const headers = { 'x-tenant': '1', 'x-hop': '7' }
    assert.equal(await runsOf({ headers }, { vary: ['X-Tenant'] }), 3)
    assert.equal(await runsOf({ headers }, { vary: ['X-Tenant'], ignore: ['x-hop'] }), 1)
    assert.equal(await runsOf({ headers: { 'x-real-ip': 'a' } }, { personal: ['X-Real-IP'] }), 3)
    assert.equal(await runsOf({ headers: { 'x-forwarded-host': 'a' } }, { personal: ['X-Forwarded-Host'] }), 3)
    assert.equal(await runsOf({ headers }, { ignore: ['x-hop', 'x-tenant'], personal: ['x-tenant'] }), 3)
    assert.equal(await runsOf({ headers: { range: 'bytes=0-1' } }, { ignore: ['range'], vary: ['range'] }), 3)
  })

  test('with headers named in vary, requests are apart by their values from the start', async () => {
    const server = served({ ttl: '1h', vary: ['X-Tenant', 'cookie'], ignore: ['x-hop'] })
    const asked: Headers[] = [
      ...[{ 'x-tenant': '1' }, { 'x-tenant': '2' }, { 'x-tenant': '1', 'x-hop': '2' }, {}],
      ...[{ cookie: 'a' }, { cookie: 'a', 'x-tenant': '1' }, { 'x-tenant': '' }],
    ]
    const send = (headers: Headers) => server.send('/', { headers })
    const all = asked.map(send)
    assert.equal(server.runs, 6)
    for (let index = 0; index < 6; index++) server.answer(index)
    const told = [0, 1, 0, 2, 3, 4, 5].map((index) => `answer ${index}`)
    assert.deepEqual(await texts(all), told)
    assert.deepEqual(await texts(asked.map(send)), told)
    server.share.clear('http://localhost/')
    assert.equal(server.share.stats().kept, 0)
  })

  test('the statistics name the headers that made requests personal', async () => {
    const server = served()
    const names = Array.from({ length: 30 }, (_, index) => `x-${String(index).padStart(2, '0')}`)
    const all = [server.send('/', { headers: { cookie: 'a' } }), server.send('/', { headers: { range: 'bytes=0-1' } })]
    assert.deepEqual(server.share.stats().personal, ['cookie'])
    for (const name of names) all.push(server.send('/', { headers: { [name]: 'a' } }))
    assert.deepEqual(server.share.stats().personal, ['cookie', ...names.slice(0, 19)])
    for (const index of all.keys()) server.answer(index)
    await Promise.all(all)
  })

  test('docs/coalesce.md states the whole list', () => {
    const stated = readFileSync(new URL('../../docs/coalesce.md', import.meta.url), 'utf8').toLowerCase()
    for (const name of [...UNKEYED, ...DIVIDING, ...UNKEYED_PREFIXES]) assert.ok(stated.includes(`\`${name}`), name)
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
      { 'cache-control': 'max-age=60;no-cache' },
      { 'cache-control': 'foo="a";max-age = 0' },
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
    ['private before a semicolon', { headers: { 'cache-control': 'private; max-age=60' } }],
    ['private after a semicolon', { headers: { 'cache-control': 'max-age=60;private' } }],
    ['private among anything', { headers: { 'cache-control': 'public/PRIVATE|max-age=60' } }],
    ['private in quotes', { headers: { 'cache-control': 'max-age=60, "private"' } }],
    ['no-store for other caches', { headers: { 'cache-control': 'max-age=60', 'cdn-cache-control': 'no-store' } }],
    ['private for other caches', { headers: { 'surrogate-control': 'private' } }],
    ['no-cache for one cache', { headers: { 'cloudflare-cdn-cache-control': 'no-cache' } }],
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

  test('a thousand who must run alone begin in steps, with ticks of the event loop between them', async () => {
    const server = served()
    const all = Array.from({ length: 1000 }, () => server.send('/'))
    server.answer(0, undefined, { headers: { 'cache-control': 'private' } })
    const grown: number[] = []
    while (server.runs < 1000) {
      const before = server.runs
      await new Promise((resolve) => setImmediate(resolve))
      grown.push(server.runs - before)
    }
    assert.ok(Math.max(...grown) <= 64, `at most ${Math.max(...grown)} in one tick`)
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
