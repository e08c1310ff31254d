/** `coalesceResponses`: answers that differ by what `Vary` names. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { coalesceResponses } from '../../src/web/coalesce.ts'
import { type Headers, served, settle, texts } from './coalesce-fixture.ts'

describe('Vary', () => {
  const vary = (names: string) => ({ headers: { vary: names } })

  test('whoever waited with other values starts over, each kind with one run', async () => {
    const server = served()
    const languages = ['en', 'fr', 'en', 'fr', 'de']
    const all = languages.map((language) => server.send('/', { headers: { 'accept-language': language } }))
    assert.equal(server.runs, 1, 'nobody knows yet that it matters')
    server.answer(0, 'en', vary('Accept-Language'))
    await settle()
    assert.equal(server.runs, 3)
    server.answer(1, 'fr', vary('Accept-Language'))
    server.answer(2, 'de', vary('Accept-Language'))
    assert.deepEqual(await texts(all), languages)
  })

  test('once it is known each kind has its own flight from the start', async () => {
    const server = served()
    const first = server.send('/')
    server.answer(0, undefined, vary('accept'))
    await first
    const all = ['a/a', 'b/b', 'a/a'].map((accept) => server.send('/', { headers: { accept } }))
    assert.equal(server.runs, 3)
    server.answer(1, 'a', vary('accept'))
    server.answer(2, 'b', vary('accept'))
    assert.deepEqual(await texts(all), ['a', 'b', 'a'])
  })

  test('an answer is reused for its own kind alone', async () => {
    const server = served({ ttl: '1h' })
    const send = (accept?: string) => server.send('/', accept === undefined ? {} : { headers: { accept } })
    for (const [index, accept] of [undefined, '', 'a/a', 'A/A', 'a/a, b/b'].entries()) {
      const before = send(accept)
      await settle()
      assert.equal(server.runs, index + 1, `absent, empty and different values are kinds of their own: ${accept}`)
      server.answer(index, String(accept), vary('accept'))
      await before
      assert.equal(await (await send(accept)).text(), String(accept))
    }
    assert.equal(server.share.stats().reused, 5)
  })

  test('names that come later are added to those that are known', async () => {
    const server = served({ ttl: '1h' })
    const send = (headers: Headers) => server.send('/', { headers })
    const one = send({ accept: 'a/a', 'accept-language': '1' })
    server.answer(0, 'one', vary('accept'))
    await one
    const two = send({ accept: 'b/b', 'accept-language': '1' })
    server.answer(1, 'two', vary('Accept-Language, accept'))
    await two
    const three = send({ accept: 'b/b', 'accept-language': '2' })
    assert.equal(server.runs, 3)
    server.answer(2, 'three', vary(''))
    await three
    assert.equal(await (await send({ accept: 'b/b', 'accept-language': '1' })).text(), 'two')
    assert.equal(await (await send({ accept: 'b/b', 'accept-language': '2' })).text(), 'three')
  })

  test('an answer for one origin, and one that is compressed, vary even if nobody said so', async () => {
    const cases: [Headers, string, string, string][] = [
      [{ 'access-control-allow-origin': 'https://a.example' }, 'origin', 'https://a.example', 'https://b.example'],
      [{ 'content-encoding': 'gzip' }, 'accept-encoding', 'gzip', 'identity'],
    ]
    for (const [headers, name, one, other] of cases) {
      const server = served({ ttl: '1h' })
      const all = [one, other].map((value) => server.send('/', { headers: { [name]: value } }))
      server.answer(0, undefined, { headers })
      await settle()
      assert.equal(server.runs, 2, name)
      server.answer(1)
      assert.deepEqual(await texts(all), ['answer 0', 'answer 1'])
    }
    const server = served()
    const all = ['https://a.example', 'https://b.example'].map((origin) => server.send('/', { headers: { origin } }))
    server.answer(0, undefined, { headers: { 'access-control-allow-origin': '*' } })
    assert.deepEqual(await texts(all), ['answer 0', 'answer 0'])
  })

  test('an answer without CORS headers goes to no request of another origin, and is not kept for any', async () => {
    const server = served({ ttl: '1h' })
    const send = (origin?: string) => server.send('/', origin === undefined ? {} : { headers: { origin } })
    const [a, b] = ['https://a.example', 'https://b.example']
    const together = [send(), send(a)]
    assert.equal(server.runs, 2, 'whoever names an origin waits for nobody who names none')
    const second = send(b)
    server.answer(0)
    server.answer(1)
    await settle()
    assert.equal(server.runs, 3, 'nor takes what was answered to another origin')
    server.answer(2)
    assert.deepEqual(await texts([...together, second]), ['answer 0', 'answer 1', 'answer 2'])
    assert.equal(await (await send()).text(), 'answer 0')
    assert.equal(server.share.stats().kept, 1)
    const again = send(a)
    assert.equal(server.runs, 4)
    server.answer(3, undefined, { headers: { 'access-control-allow-origin': a ?? '' } })
    await again
    assert.equal(await (await send(a)).text(), 'answer 3')
    const other = send(b)
    assert.equal(server.runs, 5)
    server.answer(4)
    assert.equal(await (await other).text(), 'answer 4')
  })

  test('what a proxy says was asked for is part of the key, though no Vary says so', async () => {
    const server = served({ ttl: '1h' })
    const names = [
      ...['x-forwarded-host', 'x-forwarded-scheme', 'x-forwarded-ssl', 'x-forwarded-proto', 'x-forwarded-port'],
      ...['x-original-host', 'x-host', 'x-original-url', 'x-forwarded-prefix', 'front-end-https', 'content-type'],
    ]
    const asked: Headers[] = [{}, ...names.flatMap((name) => [{ [name]: 'a.example' }, { [name]: 'evil.example' }])]
    const send = (headers: Headers) => server.send('/', { headers })
    const all = asked.map(send)
    assert.equal(server.runs, asked.length)
    for (const index of asked.keys()) server.answer(index)
    const told = asked.map((_, index) => `answer ${index}`)
    assert.deepEqual(await texts(all), told)
    assert.deepEqual(await texts(asked.map(send)), told)
    server.share.clear('http://localhost/')
    assert.equal(server.share.stats().kept, 0)
  })

  test('and so is Forwarded, but for who asked and by which proxies', async () => {
    const server = served({ ttl: '1h' })
    const send = (forwarded: string) => server.send('/', { headers: { forwarded } })
    const same = [
      'for=192.0.2.60;proto=https;by=203.0.113.43;host=a.example',
      'for="[2001:db8::17]:4711";proto=https;by=_proxy;host=a.example',
      'for=unknown;proto=https;by=203.0.113.43;host=a.example',
    ]
    const all = same.map(send)
    assert.equal(server.runs, 1)
    server.answer(0, 'a')
    assert.deepEqual(await texts(all), ['a', 'a', 'a'])
    for (const [index, other] of [
      'for=192.0.2.60;proto=http;by=203.0.113.43;host=a.example',
      'for=192.0.2.60;proto=https;by=203.0.113.43;host=evil.example',
      'for="x;host=evil.example";proto=https;by=203.0.113.43;host=a.example',
      'for=host=evil.example;proto=https;by=203.0.113.43;host=a.example',
      'for="\\"host=evil";proto=https;by=203.0.113.43;host=a.example',
      'host=evil.example',
    ].entries()) {
      const response = send(other)
      assert.equal(server.runs, index + 2, other)
      server.answer(index + 1)
      await response
    }
    server.share.clear('http://localhost/')
    assert.equal(server.share.stats().kept, 0)
  })

  test('clearAll forgets also by what answers differ', async () => {
    const server = served({ ttl: '1h' })
    const send = (accept: string) => server.send('/', { headers: { accept } })
    const first = send('a/a')
    server.answer(0, undefined, vary('accept'))
    await first
    server.share.clearAll()
    const all = [send('a/a'), send('b/b')]
    assert.equal(server.runs, 2, 'as at the very first')
    server.answer(1)
    assert.deepEqual(await texts(all), ['answer 1', 'answer 1'])
  })

  test('a value cannot be made to look like another key', async () => {
    const server = served({ ttl: '1h', key: (request) => request.headers.get('x-key') ?? '' })
    const first = server.send('/', { headers: { 'x-key': 'k', accept: 'a' } })
    server.answer(0, 'first', vary('accept, x-b'))
    await first
    for (const [index, headers] of [
      { 'x-key': 'k', accept: 'a x-b' },
      { 'x-key': 'k', accept: 'a', 'x-b': '' },
      { 'x-key': 'accept:a GET k' },
    ].entries()) {
      const other = server.send('/', { headers })
      assert.equal(server.runs, index + 2)
      server.answer(index + 1, 'other', vary('accept, x-b'))
      assert.equal(await (await other).text(), 'other')
    }
  })
})

describe('whatever a handler goes by', () => {
  const user = fc.constantFrom('', '', '', '', '', '', 'ada', 'bob')

  /** Who asks. What the answer depends on, and how the handler says so, is up to the path. */
  const asker = fc.record({
    path: fc.constantFrom(
      '/all',
      '/language',
      '/both',
      '/session',
      '/user',
      '/private',
      '/new',
      '/limited',
      '/star',
      '/large',
    ),
    method: fc.constantFrom('GET', 'GET', 'HEAD'),
    language: fc.constantFrom('', 'en', 'fr'),
    tenant: fc.constantFrom('', '1', '2'),
    cookie: user,
    authorization: user,
    address: fc.constantFrom('10.0.0.1', '10.0.0.2'),
    ticks: fc.integer({ min: 0, max: 3 }),
    leaves: fc.constantFrom(false, false, false, true),
  })

  function handle(path: string, header: (name: string) => string): Response {
    const language = header('accept-language')
    const user = `${header('cookie')} ${header('authorization')}`
    const address = header('x-forwarded-for')
    if (path === '/language') return new Response(language, { headers: { vary: 'Accept-Language' } })
    if (path === '/both') {
      // Which headers it goes by depends on one of them.
      if (language === 'en') return new Response('en', { headers: { vary: 'accept-language' } })
      const both = { vary: 'accept-language, x-tenant' }
      return new Response(`${language} ${header('x-tenant')}`, { headers: both })
    }
    if (path === '/session' || path === '/user') return new Response(user)
    if (path === '/private') return new Response(address, { headers: { 'cache-control': 'private, max-age=60' } })
    if (path === '/new') return new Response(address, { headers: { 'set-cookie': `visitor=${address}` } })
    if (path === '/limited') return new Response(address, { status: address === '10.0.0.1' ? 429 : 403 })
    if (path === '/star') return new Response(address, { headers: { vary: '*' } })
    if (path === '/large') return new Response(address.repeat(20))
    return new Response('all')
  }

  test('everyone gets what the handler says to it alone', async () => {
    const scenario = fc.array(asker, { minLength: 30, maxLength: 100 })
    let shared = 0
    await fc.assert(
      fc.asyncProperty(scenario, fc.boolean(), async (askers, ttl) => {
        const share = coalesceResponses({ maxBody: 150, ignore: ['x-tenant'], ...(ttl ? { ttl: '1h' } : {}) })
        await Promise.all(
          askers.map(async ({ path, method, language, tenant, cookie, authorization, address, ticks, leaves }) => {
            for (let tick = 0; tick < ticks * 2; tick++) await new Promise((resolve) => setImmediate(resolve))
            const given = { 'accept-language': language, 'x-tenant': tenant, cookie, authorization }
            const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
            const leaving = new AbortController()
            const request = new Request(`http://localhost${path}`, {
              method,
              headers: { ...headers, 'x-forwarded-for': address },
              signal: leaving.signal,
            })
            const header = (name: string) => request.headers.get(name) ?? ''
            const response = share(request, async () => {
              for (let tick = 0; tick < 3; tick++) await new Promise((resolve) => setImmediate(resolve))
              request.signal.throwIfAborted()
              return handle(path, header)
            })
            if (leaves) leaving.abort()
            const [settled] = await Promise.allSettled([response])
            if (settled?.status === 'rejected') return assert.ok(leaves, `nobody else is told so: ${settled.reason}`)
            const expected = handle(path, header)
            const got = settled?.value
            assert.deepEqual(
              [got?.status, await got?.text(), got?.headers.getSetCookie()],
              [expected.status, await expected.text(), expected.headers.getSetCookie()],
            )
          }),
        )
        const { joined, reused } = share.stats()
        shared += joined + reused
      }),
      { numRuns: 200 },
    )
    assert.ok(shared > 1000, `answers were shared at all: ${shared}`)
  })
})
