/** accept and follow within Express, Fastify and Hono, beside whatever else an application does there. */
import assert from 'node:assert/strict'
import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import express, { type Request as ExpressRequest, type Response as ExpressResponse, type NextFunction } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import type { Millpond } from '../../src/index.ts'
import type { JobReader } from '../../src/pond/internals.ts'
import { toFastify } from '../../src/web/fastify.ts'
import { accept, follow } from '../../src/web/index.ts'
import { toNode } from '../../src/web/node.ts'
import { until } from '../support/until.ts'
import { acceptedId, bodyOf, exchange, isProblem, lookedAt, type WebHandler, webTest } from './serving.ts'

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void

/** The same service in each framework: pushes under /api/emails, jobs under /api/jobs. */
const SERVICES: Record<string, (post: WebHandler, jobs: WebHandler) => Promise<Listener>> = {
  express: async (post, jobs) => {
    const api = express.Router()
    api.post('/emails', toNode(post))
    api.all('/jobs/:id', toNode(jobs))
    return express().use('/api', api)
  },
  fastify: async (post, jobs) => {
    const app = fastify()
    app.register(toFastify(post), { prefix: '/api/emails' })
    app.register(toFastify(jobs), { prefix: '/api/jobs' })
    await app.ready()
    return app.routing
  },
  hono: async (post, jobs) => {
    const app = new Hono().basePath('/api')
    app.post('/emails', (c) => post(c.req.raw))
    app.all('/jobs/:id', (c) => jobs(c.req.raw))
    return getRequestListener(app.fetch)
  },
}

for (const [name, service] of Object.entries(SERVICES)) {
  const serviceOf = async (pond: Millpond, bodyTimeout = '30s' as const) => {
    const queue = pond.queue('emails')
    return { queue, listener: await service(accept(queue, { bodyTimeout, maxBody: 1000 }), follow(pond)) }
  }
  const post = (origin: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${origin}/api/emails`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })

  webTest(`${name}: every body, refusals, and the job followed`, async ({ pond, serve }) => {
    const { listener, queue } = await serviceOf(pond)
    const origin = await serve(() => new Response(), listener)
    const id = await acceptedId(await post(origin, { a: 1 }))
    assert.deepEqual((await pond.job(id))?.data, { a: 1 })
    const form = await fetch(`${origin}/api/emails`, { method: 'POST', body: new URLSearchParams({ a: 'b' }) })
    assert.deepEqual((await pond.job(await acceptedId(form)))?.data, { a: 'b' })
    await isProblem(await post(origin, 1, { 'content-type': 'text/plain' }), 415)
    await isProblem(await post(origin, 'x'.repeat(5_000_000)), 413, 'PayloadTooLarge')
    assert.deepEqual((await bodyOf(await fetch(`${origin}/api/jobs/${id}`))).state, 'waiting')
    const cancelled = await fetch(`${origin}/api/jobs/${id}`, { method: 'DELETE' })
    assert.deepEqual(await bodyOf(cancelled), { id, state: 'cancelled' })
    const head = await fetch(`${origin}/api/jobs/${id}`, { method: 'HEAD' })
    const etag = head.headers.get('etag') ?? ''
    assert.deepEqual([head.status, await head.text()], [200, ''])
    const same = await fetch(`${origin}/api/jobs/${id}`, { headers: { 'if-none-match': etag } })
    assert.equal(same.status, 304)
    assert.equal((await queue.stats()).counts.waiting, 1)
  })

  webTest(`${name}: events come one by one, and hanging up ends the stream`, async ({ pond, serve }) => {
    const { listener, queue } = await serviceOf(pond)
    let results = 0
    const jobs = follow({
      job: pond.job.bind(pond),
      cancel: pond.cancel.bind(pond),
      queue: pond.queue.bind(pond),
      on: pond.on.bind(pond),
      result: (id, options) => {
        results++
        return pond.result(id, options).finally(() => results--)
      },
    })
    assert.ok(listener)
    const origin = await serve(jobs, await service(accept(queue), jobs))
    const { id } = await queue.push(1)
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { accept: 'text/event-stream' }
      ask(`${origin}/api/jobs/${id}`, { headers }, resolve).on('error', reject).end()
    })
    const [first] = (await incoming[Symbol.asyncIterator]().next()).value.toString().split('\n')
    assert.equal(first, 'event: state')
    assert.equal(results, 1)
    incoming.destroy()
    await until(() => results === 0)
  })

  webTest(`${name}: hanging up ends a wait`, async ({ pond, serve }) => {
    const queue = pond.queue('emails')
    let results = 0
    const result: JobReader['result'] = (id, options) => {
      results++
      return pond.result(id, options).finally(() => results--)
    }
    const handler = accept(lookedAt(queue, { result }))
    const origin = await serve(handler, await service(handler, follow(pond)))
    const leaving = new AbortController()
    const headers = { 'content-type': 'application/json', prefer: 'wait=60' }
    const answer = fetch(`${origin}/api/emails`, { method: 'POST', headers, body: '1', signal: leaving.signal })
    await until(() => results === 1)
    leaving.abort()
    await assert.rejects(answer)
    await until(() => results === 0)
  })
}

webTest('express: a body that a parser has read before is taken as it made it', async ({ pond, serve }) => {
  const app = express()
  app.use(express.json(), express.urlencoded({ extended: true }), express.text({ type: 'application/json5' }))
  app.use(express.raw({ type: 'application/msgpack' }))
  app.post('/', toNode(accept(pond.queue('q'))))
  const origin = await serve(() => new Response(), app)
  const dataOf = async (type: string, body: string | Uint8Array<ArrayBuffer>) => {
    const response = await fetch(origin, { method: 'POST', headers: { 'content-type': type }, body })
    return (await pond.job(await acceptedId(response)))?.data
  }
  assert.deepEqual(await dataOf('application/json', '{"a":[1]}'), { a: [1] })
  assert.deepEqual(await dataOf('application/x-www-form-urlencoded', 'a[b]=c'), { a: { b: 'c' } })
  assert.deepEqual(await dataOf('application/msgpack', new Uint8Array([0x81, 0xa1, 0x61, 0x01])), { a: 1 })
})

webTest('express: what a handler rejects with goes to the error handler', async ({ serve }) => {
  const app = express()
  app.get(
    '/',
    toNode(() => Promise.reject(new Error('broke'))),
  )
  app.use((error: Error, _request: ExpressRequest, response: ExpressResponse, _next: NextFunction) => {
    response.status(599).send(error.message)
  })
  const response = await fetch(await serve(() => new Response(), app))
  assert.deepEqual([response.status, await response.text()], [599, 'broke'])
})

webTest('fastify: its own parsers, hooks and error handler go on as ever', async ({ pond, serve }) => {
  const app = fastify()
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-hook', 'was here')
  })
  app.setErrorHandler((error, _request, reply) => reply.code(599).send(String(error)))
  app.register(toFastify(accept(pond.queue('q'))), { prefix: '/emails' })
  app.register(
    toFastify(() => Promise.reject(new Error('broke'))),
    { prefix: '/broken' },
  )
  app.post('/echo', async (request) => request.body)
  await app.ready()
  const origin = await serve(() => new Response(), app.routing)
  const send = (path: string) =>
    fetch(origin + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":1}' })
  const response = await send('/emails')
  assert.equal(response.headers.get('x-hook'), 'was here')
  await acceptedId(response)
  assert.deepEqual(await (await send('/echo')).json(), { a: 1 })
  const broken = await send('/broken')
  assert.deepEqual([broken.status, await broken.text()], [599, 'Error: broke'])
  const odd = await exchange(
    origin,
    'POST /emails HTTP/1.1\r\nHost: a/b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
  )
  assert.match(odd, /^HTTP\/1\.1 400 .*application\/problem\+json/s)
})
