/** The list of attacks: none of them reaches anything. What a browser has to withstand is in page-hostile.ts. */
import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { internalsOf } from '../../src/pond/internals.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { ALL, type Dash, startDashboard } from './fixture.ts'

async function start(t: TestContext): Promise<Dash & { pond: Millpond; id: string }> {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const { id } = await pond.queue('emails').push({ to: 'ada' })
  return { ...(await startDashboard(t, pond)), pond, id }
}

test('cross-site requests: no form, no image, no fetch of another page changes or reads anything', async (t) => {
  const { base, id, pond, ask } = await start(t)
  const cancel = (headers: Record<string, string>, body = JSON.stringify({ id }), method = 'POST') =>
    fetch(`${base}api/cancel`, { method, headers, ...(method === 'POST' && { body }) })
  const json = { 'content-type': 'application/json' }
  for (const site of ['cross-site', 'same-site']) {
    assert.equal((await cancel({ ...json, 'sec-fetch-site': site })).status, 403)
  }
  assert.equal((await cancel({ ...json, origin: 'https://evil.example' })).status, 403)
  assert.equal((await cancel({ ...json, origin: 'null' })).status, 403)
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/msgpack',
    '',
  ]) {
    assert.equal((await cancel(type === '' ? {} : { 'content-type': type })).status, 415, type)
  }
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const response = await cancel(json, '', method)
    assert.equal(response.status, 405, method)
    assert.equal(response.headers.get('access-control-allow-origin'), null)
  }
  for (const file of ['events', 'page.js', '']) {
    const response = await fetch(base + file, {
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    })
    assert.equal(response.status, 403, file)
  }
  assert.equal((await pond.job(id))?.state, 'waiting')
  // A proxy that changes Host must not shut the page out of its own server.
  assert.equal(
    (await ask('cancel', { id }, { origin: 'https://queues.example.org', 'sec-fetch-site': 'same-origin' })).status,
    200,
  )
})

test('every answer has the headers that keep it to itself', async (t) => {
  const { base } = await start(t)
  for (const [path, init] of [
    ['', {}],
    ['page.js', {}],
    ['page.css', {}],
    ['icon.svg', {}],
    ['api/nothing', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }],
    ['api/queue', {}],
    ['deep/path', { redirect: 'manual' }],
  ] as const) {
    const { headers } = await fetch(base + path, init)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';.*frame-ancestors 'none'/, path)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
  }
  const html = await (await fetch(base)).text()
  assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)|<style|\son\w+=|\sstyle=|https?:\/\//)
})

test('paths lead nowhere else', async (t) => {
  const { base } = await start(t)
  const { port } = new URL(base)
  const raw = (path: string) =>
    new Promise<{ status: number; location: string | undefined; type: string | undefined }>((resolve, reject) => {
      httpRequest({ port, host: '127.0.0.1', path }, (response) => {
        response.resume()
        const { location, 'content-type': type } = response.headers
        resolve({ status: response.statusCode ?? 0, location, type })
      })
        .on('error', reject)
        .end()
    })
  for (const path of [
    '/ops/../../etc/passwd',
    '/ops/%2e%2e/package.json',
    '/ops/queues/..%2f..%2fpackage.json/page.js/..',
  ]) {
    const { status, type } = await raw(path)
    assert.ok(status === 400 || (status === 302 && type === undefined), `${path} ${status}`)
  }
  for (const [path, location] of [
    ['/ops/queues', './queues/'],
    ['//evil.example', './evil.example/'],
    ['/ops/javascript:alert(1)', './javascript:alert(1)/'],
    ['/ops/package.json', './package.json/'],
  ] as const) {
    const answer = await raw(path)
    assert.deepEqual([answer.status, answer.location], [302, location])
    assert.equal(new URL(location, `http://127.0.0.1:${port}${path}`).host, `127.0.0.1:${port}`)
  }
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'queue/', '']) {
    const response = await fetch(`${base}api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    assert.ok([404, 405].includes(response.status), `${name} ${response.status}`)
  }
})

test('oversized, broken and nonsensical input is refused, and nothing breaks', async (t) => {
  const { base, ask, id } = await start(t)
  const post = (body: string) =>
    fetch(`${base}api/queue`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }).then(
      ({ status }) => status,
    )
  assert.equal(await post('x'.repeat(3 * 1024 * 1024)), 413)
  assert.equal(await post('{"queue":'), 400)
  assert.equal(await post('[]'), 400)
  assert.equal(await post('null'), 400)
  assert.equal(await post('"emails"'), 400)
  assert.equal(await post(`${'['.repeat(100_000)}${']'.repeat(100_000)}`), 400)
  assert.equal(await post('{"__proto__":{"store":"main"},"queue":"emails"}'), 400)
  for (const [name, body] of [
    ['queue', { queue: '../x' }],
    ['queue', { queue: { toString: 1 } }],
    ['queue', { queue: 'emails', admin: true }],
    ['jobs', { queue: 'emails', state: 'waiting', limit: 1_000_000 }],
    ['jobs', { queue: 'emails', state: '*' }],
    ['jobs', { queue: 'emails', state: 'waiting', group: 'x'.repeat(1001) }],
    ['jobs', { queue: 'emails', state: 'waiting', data: { path: [], value: 'x' } }],
    ['jobs', { queue: 'emails', state: 'waiting', data: { path: ['a'], value: { $gt: '' } } }],
    ['jobs', { queue: 'emails', state: 'waiting', data: { path: [["'"]], value: 'x' } }],
    ['jobs', { queue: 'emails', state: 'waiting', data: { path: Array(21).fill('a'), value: 'x' } }],
    ['jobs', { queue: 'emails', state: 'waiting', data: { path: ['\ud800'], value: 'x' } }],
    ['jobs', { queue: 'emails', state: 'waiting', after: "'; drop table millpond_jobs; --" }],
    ['job', { id: "' or 1=1" }],
    ['override', { queue: 'emails', settings: { limits: { running: -1 } } }],
    ['override', { queue: 'emails', settings: { whenFull: 'wait' } }],
    ['override', { queue: 'emails', settings: 7 }],
    ['clear', { queue: 'emails', names: ['nothing'] }],
    ['limitGroup', { queue: 'emails', group: 'a', limits: { weight: 1e9 } }],
    ['update', { id, change: { state: 'done' } }],
    ['update', { id, change: null }],
    ['bulk', { queue: 'emails', action: 'destroy', search: { state: 'waiting' } }],
    ['bulk', { queue: 'emails', action: 'requeue', search: { state: 'running' } }],
    ['bulk', { queue: 'emails', action: 'remove', search: {} }],
  ] as const) {
    const { status, text } = await ask(name, body)
    assert.equal(status, 400, `${name} ${JSON.stringify(body).slice(0, 80)}: ${text}`)
  }
  assert.equal((await ask('queue', { queue: 'emails', store: 'elsewhere' })).status, 404)
  assert.equal((await ask('queue', { queue: 'emails' })).status, 200)
})

test('a flood of event streams: few are open, one poller asks the store, and all is given back', async (t) => {
  const { base, pond } = await start(t)
  let asked = 0
  const { operations } = internalsOf(pond).store
  const { stats } = operations
  Object.assign(operations, {
    stats: (input: { minutes?: number }) => {
      asked++
      return stats(input)
    },
  })
  const leave = new AbortController()
  const answers = await Promise.all(Array.from({ length: 90 }, () => fetch(`${base}events`, { signal: leave.signal })))
  const open = answers.filter(({ status }) => status === 200)
  assert.ok(open.length > 0 && open.length <= 50, `${open.length} are open`)
  assert.ok(answers.every(({ status }) => status === 200 || status === 503))
  // Each shows the first look.
  for (const { body } of open)
    assert.match(Buffer.from((await body?.getReader().read())?.value ?? []).toString(), /^data: /)
  assert.ok(asked <= 2, `the store was asked ${asked} times`)
  leave.abort()
  await until(async () => {
    const again = new AbortController()
    const { status } = await fetch(`${base}events`, { signal: again.signal })
    again.abort()
    return status === 200
  }, 'a stream to be free again')
})

test('a dashboard without pages asks the store nothing, and a closing pond ends its pages', async (t) => {
  const { base, pond } = await start(t)
  const response = await fetch(`${base}events`)
  const reader = response.body?.getReader()
  assert.equal((await reader?.read())?.done, false)
  await pond.close({ timeout: 100 })
  await until(async () => (await reader?.read())?.done === true, 'the stream to end')
  assert.equal((await fetch(`${base}events`)).status, 200)
})

test('tokens and payloads are in no URL: reads are POSTs, and a token in a query opens nothing', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const token = 'a-token-of-some-length'
  const { base } = await startDashboard(t, pond, { tokens: [{ token, ...ALL }] })
  for (const query of [`?token=${token}`, `?access_token=${token}`, `?authorization=Bearer%20${token}`]) {
    assert.equal((await fetch(`${base}events${query}`)).status, 401)
    const headers = { 'content-type': 'application/json' }
    assert.equal((await fetch(`${base}api/workers${query}`, { method: 'POST', headers, body: '{}' })).status, 401)
  }
})
