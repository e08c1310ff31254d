/** Paths that can be read in more than one way, over real connections: no handler gets to see another path than was sent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import express from 'express'
import fastify from 'fastify'
import { toFastify } from '../../src/web/fastify.ts'
import { toNode } from '../../src/web/node.ts'
import { checkTarget } from '../../src/web/path.ts'
import { Refusal } from '../../src/web/problem.ts'
import { exchange, webTest } from './serving.ts'

/** Each would become `/jobs/secret` in a URL, or name another host. */
const BENT = [
  '/jobs/x/../secret',
  '/jobs/./secret',
  '/jobs/x/%2e%2E/secret',
  '/jobs/x/.%2e/secret',
  '/jobs\\secret',
  '/jobs/x\\..\\secret',
  '/jobs/sec\tret',
  '/jobs/secret#/public',
  '/jobs/secret?x#y',
  '/jobs/secret/..',
  '/jobs/secret/.',
  'http://a.b/jobs/secret',
  'HTTP://evil.example/jobs/secret',
  '*',
]
/** These are what they look like. */
const STRAIGHT = [
  '/jobs/..x/y..',
  '/jobs/...',
  '/jobs/a%2Fb%5C%23',
  '/jobs/%73ecret',
  '//evil.example/x',
  '/jobs/x?to=../secret\\',
]

const LISTENERS = {
  'node:http': async (handler: (request: Request) => Response) => toNode(handler),
  express: async (handler: (request: Request) => Response) => express().use(toNode(handler)),
  fastify: async (handler: (request: Request) => Response) => {
    const app = fastify()
    app.register(toFastify(handler))
    await app.ready()
    return app.routing
  },
}

for (const [name, listenerFor] of Object.entries(LISTENERS)) {
  webTest(`${name}: a path that a URL would change is refused, others arrive as they were sent`, async ({ serve }) => {
    const seen: string[] = []
    const handler = (request: Request) => {
      const { pathname, search } = new URL(request.url)
      seen.push(pathname + search)
      return new Response('seen')
    }
    const origin = await serve(handler, await listenerFor(handler))
    const ask = (target: string) => exchange(origin, `GET ${target} HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n`)
    for (const target of BENT) {
      const heard = await ask(target)
      assert.match(heard, /^HTTP\/1\.1 40[04] /, target)
      // These two the server's parser may refuse before us.
      if (name === 'node:http' && target !== '/jobs/sec\tret' && target !== '*')
        assert.match(heard, /"code":"InvalidPath"/, target)
    }
    assert.deepEqual(seen, [])
    for (const target of STRAIGHT) assert.match(await ask(target), /^HTTP\/1\.1 200 /, target)
    assert.deepEqual(seen, STRAIGHT)
  })
}

test('control characters, which a URL is made without, are refused also where the server lets them through', () => {
  for (const target of ['/jobs/sec\tret', '/jobs/secret\n', '/jobs/\u007f', '/jobs/secret ', '/jobs?a=\r']) {
    assert.throws(
      () => checkTarget(target),
      (error: unknown) => error instanceof Refusal && error.problem.code === 'InvalidPath',
      target,
    )
  }
  checkTarget('/jobs/\u00fc?q=%0A')
})

webTest('a request without a Host, or with two, is refused; HTTP/1.0 needs none', async ({ serve }) => {
  const origin = await serve((request) => new Response(request.url))
  const ask = (head: string) => exchange(origin, `GET /x ${head}\r\nConnection: close\r\n\r\n`)
  assert.match(await ask('HTTP/1.1\r\nHost: a.b\r\nHost: c.d'), /^HTTP\/1\.1 400 [\s\S]*Host/)
  assert.match(await ask('HTTP/1.1\r\nHost: a.b\r\nHost: a.b'), /^HTTP\/1\.1 400 /)
  assert.match(await ask('HTTP/1.1\r\nX: y'), /^HTTP\/1\.1 400 /)
  assert.match(await ask('HTTP/1.0'), /http:\/\/localhost\/x/)
})
