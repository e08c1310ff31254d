/** `coalesceResponses`: what is shared, and how. What must not be is in `coalesce-apart.test.ts`. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { mockTime } from '../unit/mock-time.ts'
import { served, settle, texts } from './coalesce-fixture.ts'

describe('identical requests', () => {
  test('share one run; each gets a response of its own with the status, the headers and the bytes', async () => {
    const { share, send, answer } = served()
    const all = Array.from({ length: 1000 }, () =>
      send('/a?b=1', { headers: { 'x-request-id': String(Math.random()) } }),
    )
    const bytes = Uint8Array.from([0, 255, 128, 13, 10])
    const headers = { 'content-type': 'application/x-own', 'x-two': 'words', link: '</a>, </b>' }
    answer(0, bytes, { status: 404, statusText: 'Nothing Here', headers })
    const responses = await Promise.all(all)
    assert.equal(new Set(responses).size, 1000)
    for (const response of responses) {
      assert.deepEqual([response.status, response.statusText], [404, 'Nothing Here'])
      assert.deepEqual(Object.fromEntries(response.headers), { 'content-length': '5', ...headers })
      assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes)
    }
    const { flights, joined, alone, underWay } = share.stats()
    assert.deepEqual({ flights, joined, alone, underWay }, { flights: 1, joined: 999, alone: 0, underWay: 0 })
  })

  test('what one does to the headers of its response is seen by no other', async () => {
    const { send, answer } = served({ ttl: '1h' })
    const both = [send('/'), send('/')]
    answer(0, 'text', { headers: { 'x-own': 'first' } })
    const [one, two] = await Promise.all(both)
    one?.headers.set('x-own', 'changed')
    assert.equal(two?.headers.get('x-own'), 'first')
    assert.equal((await send('/')).headers.get('x-own'), 'first')
  })

  test('a body in pieces and one that is empty arrive whole, none stays none', async () => {
    const { send, answer } = served()
    const pieces = [send('/pieces'), send('/pieces')]
    const body = new ReadableStream({
      start(controller) {
        for (const piece of ['one ', 'two ', 'three']) controller.enqueue(new TextEncoder().encode(piece))
        controller.close()
      },
    })
    answer(0, body)
    assert.deepEqual(await texts(pieces), ['one two three', 'one two three'])
    const empty = [send('/empty'), send('/empty')]
    answer(1, '')
    assert.deepEqual(await texts(empty), ['', ''])
    const none = [send('/none'), send('/none')]
    answer(2, null, { status: 204 })
    for (const response of await Promise.all(none)) assert.deepEqual([response.status, response.body], [204, null])
  })

  test('are those with the same URL and method; GET and HEAD have flights of their own', async () => {
    const server = served()
    const all = [
      server.send('/a'),
      server.send('/b'),
      server.send('/a', { method: 'HEAD' }),
      server.send('/a?'),
      server.send('/a'),
    ]
    assert.equal(server.runs, 4)
    for (let index = 0; index < 4; index++) server.answer(index, index === 2 ? null : undefined)
    assert.deepEqual(await texts(all), ['answer 0', 'answer 1', '', 'answer 3', 'answer 0'])
  })

  test('a key of the service leaves out what does not matter, and undefined what must not be shared', async () => {
    const server = served({
      key: (request) => {
        const { pathname } = new URL(request.url)
        return pathname === '/private' ? undefined : pathname
      },
    })
    const all = ['/a?utm=1', '/a?utm=2', '/private', '/private'].map((url) => server.send(url))
    assert.equal(server.runs, 3)
    for (let index = 0; index < 3; index++) server.answer(index)
    assert.deepEqual(await texts(all), ['answer 0', 'answer 0', 'answer 1', 'answer 2'])
    for (const key of [7, { key: 'a' }, { key: 1, covers: [] }, { key: 'a', covers: ['no name'] }]) {
      const refusing = served({ key: () => JSON.parse(JSON.stringify(key)) })
      await assert.rejects(refusing.send('/'), { code: 'InvalidOption', message: /key must answer with/ })
    }
  })

  test('an error reaches all who wait for it, and the next request runs anew', async () => {
    const server = served({ ttl: '1h' })
    const error = new Error('broken')
    const settled = Promise.allSettled([server.send('/'), server.send('/')])
    server.fail(0, error)
    for (const result of await settled) assert.deepEqual(result, { status: 'rejected', reason: error })
    const next = server.send('/')
    server.answer(1)
    assert.equal(await (await next).text(), 'answer 1')
  })

  test('so does one that comes in the middle of the body', async () => {
    const server = served()
    const error = new Error('cut off')
    const settled = Promise.allSettled([server.send('/'), server.send('/')])
    server.answer(0, new ReadableStream({ pull: (controller) => controller.error(error) }))
    for (const result of await settled) assert.deepEqual(result, { status: 'rejected', reason: error })
  })

  test('options that it cannot work with are refused', () => {
    const refused: [Record<string, unknown>, RegExp][] = [
      [{ key: 'url' }, /key must be a function/],
      [{ ttl: 'soon' }, /ttl/],
      [{ timeout: 0 }, /timeout/],
      [{ personal: ['x user'] }, /personal must be an array of header names/],
      [{ maxBody: -1 }, /maxBody/],
      [{ maxBytes: 0 }, /maxBytes/],
      [{ maxEntries: 0 }, /maxEntries/],
      [{ vary: 'accept' }, /vary must be an array of header names/],
      [{ ignore: [''] }, /ignore must be an array of header names/],
      [{ varies: [] }, /unknown option "varies"/],
    ]
    for (const [options, message] of refused) assert.throws(() => served(options), { code: 'InvalidOption', message })
  })
})

describe('clients who leave, and runs that take too long', () => {
  test('when the one who runs it hangs up and that breaks the run, the others start over with one run', async () => {
    for (const broken of ['throws', 'answers 500']) {
      const server = served()
      const leaving = new AbortController()
      const first = Promise.allSettled([server.send('/', { signal: leaving.signal })])
      const others = Array.from({ length: 10 }, () => server.send('/'))
      leaving.abort()
      if (broken === 'throws') server.fail(0, leaving.signal.reason)
      else server.answer(0, 'aborted', { status: 500 })
      await settle()
      assert.equal(server.runs, 2, broken)
      server.answer(1)
      assert.deepEqual(await texts(others), Array(10).fill('answer 1'), broken)
      await first
    }
  })

  test('when it answers all the same, they get that', async () => {
    const server = served()
    const leaving = new AbortController()
    const all = [server.send('/', { signal: leaving.signal }), server.send('/')]
    leaving.abort()
    server.answer(0)
    assert.deepEqual(await texts(all), ['answer 0', 'answer 0'])
  })

  test('nothing is run for one who waited and is gone by then', async () => {
    const server = served()
    const leaving = new AbortController()
    const first = server.send('/')
    const gone = assert.rejects(server.send('/', { signal: leaving.signal }), { name: 'AbortError' })
    leaving.abort()
    server.answer(0, 'mine', { headers: { 'cache-control': 'private' } })
    await gone
    assert.equal(await (await first).text(), 'mine')
    assert.equal(server.runs, 1)
  })

  test('those who wait too long are told to come again, the one who runs it gets its answer, and new ones run anew', async (t) => {
    const tick = mockTime(t)
    const server = served({ timeout: '2s' })
    const first = server.send('/')
    const waiting = server.send('/')
    tick(1999)
    await settle()
    assert.equal(server.share.stats().underWay, 1)
    tick(1)
    const told = await waiting
    assert.equal(told.status, 503)
    assert.match(told.headers.get('retry-after') ?? '', /^[12]$/)
    assert.equal(told.headers.get('content-type'), 'application/problem+json')
    assert.equal(JSON.parse(await told.text()).code, 'TimedOut')
    const next = server.send('/')
    server.answer(1)
    server.answer(0)
    assert.deepEqual(await texts([first, next]), ['answer 0', 'answer 1'])
    assert.equal(server.share.stats().timedOut, 1)
  })

  test('a run that takes too long with nobody waiting is nobody’s error', async (t) => {
    const tick = mockTime(t)
    const server = served({ timeout: '2s' })
    const first = server.send('/')
    tick(2000)
    await settle()
    server.answer(0)
    assert.deepEqual(await texts([first]), ['answer 0'])
  })
})

describe('ttl', () => {
  test('an answer is reused until it is over, with its age', async (t) => {
    const tick = mockTime(t)
    const server = served({ ttl: '3s' })
    const first = server.send('/')
    server.answer(0)
    await first
    tick(999)
    const young = await server.send('/')
    assert.deepEqual([await young.text(), young.headers.get('age')], ['answer 0', null])
    tick(2000)
    assert.equal((await server.send('/')).headers.get('age'), '2')
    assert.deepEqual([server.share.stats().reused, server.share.stats().kept], [2, 1])
    tick(1)
    assert.equal(server.share.stats().kept, 0)
    const next = server.send('/')
    server.answer(1)
    assert.deepEqual(await texts([next]), ['answer 1'])
  })

  test('Cache-Control shortens it, never lengthens it', async (t) => {
    const tick = mockTime(t)
    const server = served({ ttl: '10s' })
    const lives: [Record<string, string>, number][] = [
      [{ 'cache-control': 'public, max-age=2' }, 2000],
      [{ 'cache-control': 'max-age=60' }, 10_000],
      [{ 'cache-control': 's-maxage=3, max-age=60' }, 3000],
      [{ 'cache-control': 'Max-Age="4"' }, 4000],
      [{ 'cache-control': 'max-age=6', age: '4' }, 2000],
      [{ 'cache-control': 'max-age=6', age: '7' }, 0],
      [{ 'cache-control': 'max-age=0, must-revalidate' }, 0],
      [{ 'cache-control': 'max-age=nonsense' }, 0],
      [{ 'cache-control': 'max-age' }, 0],
      [{ 'cache-control': 'public;max-age=2' }, 2000],
      [{ 'cache-control': 'max-age=60, max-age=3' }, 3000],
      [{ 'cache-control': 'x-max-age=3' }, 10_000],
      [{ 'cache-control': 'max-age=60', 'cdn-cache-control': 'max-age=3' }, 3000],
      [{ 'cache-control': 'max-age=2', 'cdn-cache-control': 'max-age=60' }, 2000],
      [{ 'cdn-cache-control': 'max-age=0' }, 0],
      [{ 'surrogate-control': 'content="ESI/1.0", max-age=4' }, 4000],
      [{ expires: '0' }, 0],
      [{ expires: 'Thu, 01 Jan 1970 00:00:00 GMT', 'cache-control': 'max-age=5' }, 5000],
    ]
    for (const [index, [headers, life]] of lives.entries()) {
      const before = server.runs
      const both = [server.send(`/${index}`), server.send(`/${index}`)]
      server.answer(before, undefined, { headers })
      await Promise.all(both)
      assert.equal(server.runs, before + 1, 'whoever is there at the same time shares it')
      assert.equal(server.share.stats().kept, life === 0 ? 0 : 1, JSON.stringify(headers))
      if (life > 0) {
        tick(life - 1)
        await server.send(`/${index}`)
        assert.equal(server.runs, before + 1, JSON.stringify(headers))
      }
      tick(1)
      const after = server.send(`/${index}`)
      assert.equal(server.runs, before + 2, JSON.stringify(headers))
      server.answer(before + 1, undefined, { headers: { 'cache-control': 'max-age=0' } })
      await after
      tick(20_000)
    }
  })

  test('an answer of a status that does not last is shared and not kept', async (t) => {
    mockTime(t)
    const server = served({ ttl: '1h' })
    for (const [index, status] of [500, 503, 302, 400, 201].entries()) {
      const both = [server.send(`/${index}`), server.send(`/${index}`)]
      server.answer(index, undefined, { status })
      assert.deepEqual(await texts(both), Array(2).fill(`answer ${index}`))
      assert.equal(server.share.stats().kept, 0, String(status))
    }
  })

  test('it is bounded by entries and bytes', async (t) => {
    mockTime(t)
    const few = served({ ttl: '1h', maxEntries: 2 })
    const light = served({ ttl: '1h', maxBytes: 1000 })
    for (let index = 0; index < 4; index++) {
      for (const server of [few, light]) {
        const got = server.send(`/${index}`)
        server.answer(index, 'x'.repeat(300))
        await got
      }
    }
    assert.equal(few.share.stats().kept, 2)
    const { kept, keptBytes } = light.share.stats()
    assert.equal(kept, 2)
    assert.ok(keptBytes > 600 && keptBytes <= 1000)
  })

  test('clear forgets what is kept in all variants, and gives nobody who comes later the answer of a run under way', async (t) => {
    mockTime(t)
    const server = served({ ttl: '1h' })
    const vary = { headers: { vary: 'accept' } }
    const first = server.send('/', { headers: { accept: 'a/a' } })
    server.answer(0, undefined, vary)
    await first
    const second = server.send('/', { headers: { accept: 'b/b' } })
    server.answer(1, undefined, vary)
    await second
    const other = server.send('/other')
    server.answer(2)
    await other
    const underWay = server.send('/', { headers: { accept: 'c/c' } })
    assert.equal(server.share.stats().kept, 3)
    server.share.clear('http://localhost/')
    assert.equal(server.share.stats().kept, 1)
    const after = server.send('/', { headers: { accept: 'c/c' } })
    server.answer(4, 'new', vary)
    server.answer(3, 'old', vary)
    assert.deepEqual(await texts([underWay, after]), ['old', 'new'])
    assert.deepEqual(await texts([server.send('/', { headers: { accept: 'c/c' } })]), ['new'])
    server.share.clearAll()
    assert.equal(server.share.stats().kept, 0)
  })
})
