/** `coalesceResponses`: whatever host a client names, no other client gets an answer made for it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTwo, createServer as createTwo } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, type TestContext, test } from 'node:test'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { type CoalesceResponsesOptions, coalesceResponses } from '../../src/web/coalesce.ts'
import { exchange, webTest } from './serving.ts'

const byPath = ({ url }: Request) => new URL(url).pathname
/** All that a handler can see of the host, as it might put it into a link. */
const hostsOf = ({ url, headers }: Request) => `${new URL(url).origin} ${headers.get('host')}`

/** What the handler answers to each, one after the other, by kept answers. */
async function answersTo(requests: readonly Request[], options: CoalesceResponsesOptions): Promise<string[]> {
  const share = coalesceResponses({ ttl: '1h', ...options })
  const answers: string[] = []
  for (const request of requests)
    answers.push(await (await share(request, () => new Response(hostsOf(request)))).text())
  return answers
}

const asked = (origin: string, host?: string) =>
  new Request(`${origin}/a`, { headers: host === undefined ? {} : { host } })

const REQUESTS = [
  asked('http://evil.example', 'good.example'),
  asked('http://good.example', 'evil.example'),
  asked('http://good.example', 'good.example'),
  asked('https://good.example', 'good.example'),
  asked('http://good.example:81', 'good.example:81'),
  asked('http://good.example', 'good.example:81'),
  asked('http://good.example', ''),
  asked('http://good.example'),
]

for (const [name, options] of Object.entries({ 'by the URL': {}, 'by a key of its own': { key: byPath } })) {
  test(`${name}: hosts are apart, in the URL and in Host`, async () => {
    const answers = await answersTo(REQUESTS, options)
    assert.deepEqual(answers, REQUESTS.map(hostsOf))
  })

  test(`${name}: requests of one host share`, async () => {
    const share = coalesceResponses({ ttl: '1h', ...options })
    let runs = 0
    const ask = () => share(asked('http://good.example', 'good.example'), () => new Response(`${++runs}`))
    for (let time = 0; time < 3; time++) assert.equal(await (await ask()).text(), '1')
    share.clear('key' in options ? '/a' : 'http://good.example/a')
    assert.equal(await (await ask()).text(), '2')
  })
}

test('a service whose answers name no host shares them among its hosts', async () => {
  const [first = ''] = REQUESTS.map(hostsOf)
  const all = REQUESTS.map(() => first)
  assert.deepEqual(await answersTo(REQUESTS, { key: byPath, ignore: ['Host'] }), all)
  assert.deepEqual(await answersTo(REQUESTS, { key: (request) => ({ key: byPath(request), covers: ['host'] }) }), all)
  const personal = await answersTo([...REQUESTS, ...REQUESTS.slice(0, 3)], { key: byPath, personal: ['host'] })
  assert.deepEqual(personal.slice(0, 8), REQUESTS.map(hostsOf))
})

/** The app, coalesced, and who it was asked as. */
function app(options: CoalesceResponsesOptions) {
  const share = coalesceResponses({ ttl: '1h', ...options })
  const hono = new Hono()
  hono.use(async (c, next) => {
    const answer = await share(c.req.raw, async () => {
      await next()
      return c.res
    })
    c.res = undefined
    c.res = answer
  })
  hono.get('*', (c) => c.text(hostsOf(c.req.raw)))
  return hono
}

async function underHono(t: TestContext, options: CoalesceResponsesOptions) {
  const server = serve({ fetch: app(options).fetch, port: 0, hostname: '127.0.0.1' })
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('on the wire', { timeout: 30_000 }, () => {
  for (const [name, options] of Object.entries({ 'by the URL': {}, 'by a key of its own': { key: byPath } })) {
    test(`a whole URL in the request line under Hono, ${name}`, async (t) => {
      const origin = await underHono(t, options)
      const ask = async (target: string, host: string) => {
        const heard = await exchange(origin, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
        return heard.slice(heard.indexOf('\r\n\r\n') + 4)
      }
      assert.match(await ask('http://good.example/a', 'evil.example'), /evil\.example/)
      assert.match(await ask('http://evil.example/a', 'good.example'), /evil\.example/)
      for (const target of ['http://good.example/a', '/a']) {
        assert.doesNotMatch(await ask(target, 'good.example'), /evil/)
      }
    })

    test(`:authority and Host of HTTP/2 under Hono, ${name}`, async (t) => {
      const server = serve({ fetch: app(options).fetch, port: 0, hostname: '127.0.0.1', createServer: createTwo })
      await once(server, 'listening')
      const client = connectTwo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      t.after(() => {
        client.destroy()
        server.close()
      })
      const ask = (headers: Record<string, string>) => text(client.request({ ':path': '/a', ...headers }))
      assert.match(await ask({ ':authority': 'good.example', host: 'evil.example' }), /evil\.example/)
      assert.match(await ask({ ':authority': 'evil.example', host: 'good.example' }), /evil\.example/)
      assert.doesNotMatch(await ask({ ':authority': 'good.example' }), /evil/)
      assert.doesNotMatch(await ask({ ':authority': 'good.example', host: 'good.example' }), /evil/)
    })
  }
})

webTest('behind toNode, Host is what the URL has, so a key of the path is divided by it', async ({ serve: listen }) => {
  const share = coalesceResponses({ ttl: '1h', key: byPath })
  const origin = await listen((request) => share(request, () => new Response(hostsOf(request))))
  const ask = async (host: string) => {
    const heard = await exchange(origin, `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    return heard.slice(heard.indexOf('\r\n\r\n') + 4)
  }
  assert.equal(await ask('evil.example'), 'http://evil.example evil.example')
  assert.equal(await ask('good.example'), 'http://good.example good.example')
})
