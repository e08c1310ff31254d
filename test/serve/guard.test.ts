/** Who may ask: tokens, hosts, pages of other origins. */
import assert from 'node:assert/strict'
import { serve } from '../../src/serve/index.ts'
import { refused } from '../api/suite.ts'
import { type Answered, answered, type Client, isProblem, serveTest } from './client.ts'

const TOKEN = 'correct-horse-battery'
const OTHER = 'a-second-token-0123'

async function asked(client: Client, url: string, headers: Record<string, string>, method = 'GET'): Promise<Answered> {
  return answered(await client.served.handle(new Request(url, { method, headers })))
}

serveTest('with a token nothing but the health is answered without it, on loopback too', async ({ open }) => {
  const client = await open({ tokens: [TOKEN, OTHER] })
  const bad = [
    {},
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer  ' },
    { authorization: TOKEN },
    { authorization: `Basic ${TOKEN}` },
    { authorization: `Bearer ${TOKEN}x` },
    { authorization: `Bearer ${TOKEN.slice(0, -1)}` },
    { authorization: `Bearer ${TOKEN} ${OTHER}` },
    { authorization: `Bearer ${'x'.repeat(5000)}` },
  ]
  for (const headers of bad) {
    for (const path of ['/v1/queues', '/openapi.json', '/nothing/here', '/v1/jobs/none', '/%ff']) {
      const refused = await asked(client, `http://127.0.0.1${path}`, headers)
      isProblem(refused, 401)
      assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer/)
    }
    isProblem(await asked(client, 'http://127.0.0.1/v1/queues/q/requeue', headers, 'POST'), 401)
  }
  for (const scheme of ['Bearer', 'bearer']) {
    for (const token of [TOKEN, OTHER]) {
      const headers = { authorization: `${scheme} ${token}` }
      assert.equal((await asked(client, 'http://queue.example.org/v1/queues', headers)).status, 200)
    }
  }
  assert.equal((await asked(client, 'http://127.0.0.1/healthz', {})).status, 200)
})

serveTest('the body of a request without the token is not read', async ({ open }) => {
  const client = await open({ tokens: [TOKEN] })
  let pulled = false
  const body = new ReadableStream<Uint8Array>(
    {
      pull() {
        pulled = true
      },
    },
    { highWaterMark: 0 },
  )
  const headers = { 'content-type': 'application/json' }
  const init: RequestInit = { method: 'POST', headers, body, duplex: 'half' }
  isProblem(await answered(await client.served.handle(new Request('http://localhost/v1/queues/q/jobs', init))), 401)
  assert.equal(pulled, false)
})

serveTest('without a token only names of this machine are taken as Host', async ({ open }) => {
  const client = await open({ hosts: ['Queue.internal'] })
  for (const host of [
    'localhost',
    'LOCALHOST:8080',
    '127.0.0.1:1',
    '127.1.2.3',
    '[::1]',
    '[::1]:80',
    'queue.internal:99',
  ]) {
    assert.equal((await asked(client, 'http://localhost/v1/queues', { host })).status, 200, host)
  }
  const foreign = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[::2]',
    'x@localhost',
    '',
  ]
  for (const host of foreign) {
    isProblem(await asked(client, 'http://localhost/v1/queues', { host }), 403)
    isProblem(await asked(client, 'http://localhost/healthz', { host }), 403)
  }
  // Where a runtime hands over no Host, the URL has it.
  isProblem(await asked(client, 'http://evil.example/v1/queues', {}), 403)
})

serveTest('pages of other origins are refused, with a token or without; there is no CORS', async ({ open }) => {
  for (const tokens of [[], [TOKEN]]) {
    const client = await open({ tokens })
    const own = { host: 'localhost:8080', authorization: `Bearer ${TOKEN}` }
    const foreign: Record<string, string>[] = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: 'http://localhost:9999' },
      { origin: 'http://localhost' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:8080', 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of foreign) {
      const refused = await asked(client, 'http://localhost:8080/v1/queues/q/requeue', { ...own, ...headers }, 'POST')
      isProblem(refused, 403)
      const names = [...refused.headers.keys()].filter((name) => name.startsWith('access-control'))
      assert.deepEqual(names, [])
    }
    const same = { ...own, origin: 'http://localhost:8080', 'sec-fetch-site': 'same-origin' }
    assert.equal((await asked(client, 'http://localhost:8080/v1/queues', same)).status, 200)
    isProblem(
      await asked(client, 'http://localhost:8080/v1/queues', { ...own, origin: 'http://localhost:8080' }, 'OPTIONS'),
      405,
    )
  }
})

serveTest('what a page can send without being asked about, forms and plain text, is not taken', async ({ open }) => {
  const client = await open()
  const types = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain', 'a', undefined]
  for (const type of types) {
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
    const body = new TextEncoder().encode('{"data":1}')
    const response = await answered(await client.raw('POST', '/v1/queues/q/jobs', { headers, body }))
    isProblem(response, 415)
    assert.equal(response.headers.get('accept-post'), 'application/json, application/msgpack')
  }
  assert.deepEqual((await client.get('/v1/queues')).body, { queues: [] })
})

serveTest('tokens that are none are refused when it is opened, and not shown', async () => {
  for (const tokens of [['hidden'], ['hidden hidden hidden'], ['hidden'.repeat(300)], [7]]) {
    const error = await refused(serve('memory:', JSON.parse(JSON.stringify({ tokens }))), 'InvalidOption', /token/)
    assert.doesNotMatch(error.message, /hidden/)
  }
})
