/** The dashboard at any path of each server, in `serve`, and as a command. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { serve as serveHono } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { dashboard } from '../../src/dashboard/index.ts'
import { Millpond } from '../../src/index.ts'
import { serve } from '../../src/serve/index.ts'
import { toFastify } from '../../src/web/fastify.ts'
import { closeServer, toNode } from '../../src/web/node.ts'
import { startMillpond } from '../cli/fixture.ts'
import { ran } from '../cli/in-process.ts'
import { after, scratch } from '../support/cleaning.ts'
import { ALL, firstTick } from './fixture.ts'

async function handlerOf(t: TestContext) {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  await pond.queue('emails').push({ to: 'ada' })
  return dashboard(pond, { rights: () => ALL })
}

/** Asks what a browser would ask. */
async function asked(base: string, headers: Record<string, string> = {}): Promise<void> {
  const without = await fetch(base.slice(0, -1), { headers })
  assert.equal(without.url, base, 'a slash is added')
  const html = await (await fetch(base, { headers })).text()
  for (const [, file = ''] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    const response = await fetch(new URL(file, base), { headers })
    assert.equal(response.status, 200, file)
    assert.ok((await response.text()).length > 0)
  }
  const body = JSON.stringify({ queue: 'emails', state: 'waiting' })
  const jobs = await fetch(`${base}api/jobs`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  assert.equal(jobs.status, 200)
  assert.match(await jobs.text(), /"state":"waiting"/)
  assert.equal((await firstTick(base, headers)).stores[0].queues[0].name, 'emails')
}

test('Express, below a path and after a body parser', async (t) => {
  const app = express()
  app.use(express.json())
  app.use('/admin/queues', toNode(await handlerOf(t)))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(t, () => closeServer(server, { timeout: 100 }))
  await asked(`http://127.0.0.1:${(server.address() as AddressInfo).port}/admin/queues/`)
})

test('Fastify, as a plugin with a prefix', async (t) => {
  const app = fastify({ forceCloseConnections: true })
  app.register(toFastify(await handlerOf(t)), { prefix: '/admin/queues' })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  after(t, () => app.close())
  await asked(`${origin}/admin/queues/`)
})

test('Hono, below a path', async (t) => {
  const handle = await handlerOf(t)
  const app = new Hono()
  app.all('/admin/queues', (c) => handle(c.req.raw))
  app.all('/admin/queues/*', (c) => handle(c.req.raw))
  const { promise, resolve } = Promise.withResolvers<number>()
  const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
  const port = await promise
  after(t, () => 'closeAllConnections' in server && closeServer(server, { timeout: 100 }))
  await asked(`http://127.0.0.1:${port}/admin/queues/`)
})

test("'local' is nobody under Hono, which does not say who the client is", async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const handle = dashboard(pond, { rights: 'local' })
  const app = new Hono().all('/queues/*', (c) => handle(c.req.raw))
  const { promise, resolve } = Promise.withResolvers<number>()
  const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
  const port = await promise
  after(t, () => 'closeAllConnections' in server && closeServer(server, { timeout: 100 }))
  const response = await fetch(`http://localhost:${port}/queues/api/workers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  assert.equal(response.status, 403)
  assert.match(await response.text(), /does not tell .* rights or tokens/)
})

test('part of serve: at /dashboard/, with the tokens of the service, or for this machine alone', async (t) => {
  const token = 'a-token-of-some-length'
  for (const tokens of [[], [token]]) {
    const service = await serve('memory:', { tokens, hosts: ['queues.example'], dashboard: true })
    after(t, () => service.close())
    const server = createServer(toNode(service.handle))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    after(t, () => closeServer(server, { timeout: 100 }))
    const { port } = server.address() as AddressInfo
    const headers = {
      'content-type': 'application/json',
      ...(tokens.length > 0 && { authorization: `Bearer ${token}` }),
    }
    const at = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${port}${path}`, init)
    assert.equal((await at('/dashboard/')).status, 200)
    assert.equal((await at('/dashboard', { redirect: 'manual' })).status, 302)
    const asks = (more: object) => ({ method: 'POST', headers: { ...headers, ...more }, body: '{}' })
    const workers = (more: object) => at('/dashboard/api/workers', asks(more))
    assert.equal((await workers({})).status, 200)
    assert.equal((await workers({ 'sec-fetch-site': 'cross-site' })).status, 403)
    const far = (host: string) => service.handle(new Request(`http://${host}/dashboard/api/workers`, asks({})))
    if (tokens.length > 0) {
      assert.equal((await workers({ authorization: 'Bearer nonsense-of-length' })).status, 401)
      assert.equal((await workers({ 'x-forwarded-for': '192.0.2.1' })).status, 200)
      assert.equal((await far('localhost')).status, 200)
      continue
    }
    assert.equal((await service.handle(new Request('http://evil.example/dashboard/'))).status, 403)
    // As `millpond dashboard` and `rights: 'local'`: not through a proxy, and not where nobody knows who asks.
    for (const name of ['x-forwarded-for', 'forwarded', 'via'])
      assert.equal((await workers({ [name]: '192.0.2.1' })).status, 403, name)
    for (const host of ['localhost', 'queues.example']) assert.equal((await far(host)).status, 403, host)
  }
  const plain = await serve('memory:')
  assert.equal((await plain.handle(new Request('http://127.0.0.1/dashboard/'))).status, 404)
  await plain.close()
})

test('millpond dashboard: several stores, rights taken away, actions in the log, and a stop', {
  timeout: 60_000,
}, async (t) => {
  const folder = scratch(t)
  const urls = ['one', 'two'].map((name) => `sqlite:${join(folder, `${name}.db`)}`)
  for (const url of urls) {
    const pond = await Millpond.open(url)
    await pond.queue('emails').push({ secret: 'canary' })
    await pond.close()
  }
  const [one = '', two = ''] = urls
  const running = await startMillpond([
    'dashboard',
    '--store',
    `main=${one}`,
    '--store',
    `archive=${two}`,
    '--port',
    '0',
    '--no-payloads',
  ])
  const base = `${running.origin}/`
  await asked(base)
  assert.deepEqual(
    (await firstTick(base)).stores.map(({ name }: { name: string }) => name),
    ['main', 'archive'],
  )
  const post = (body: object, name: string) =>
    fetch(`${base}api/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  assert.equal((await post({ store: 'archive', queue: 'emails' }, 'pause')).status, 200)
  const search = { state: 'waiting', text: 'canary' }
  assert.equal((await post({ store: 'archive', queue: 'emails', ...search }, 'jobs')).status, 403)
  // A proxy on this machine hands on requests of anybody.
  const forwarded = { 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.1' }
  const far = await fetch(`${base}api/queue`, { method: 'POST', headers: forwarded, body: '{"queue":"emails"}' })
  assert.equal(far.status, 403)
  assert.equal(await running.end('SIGTERM'), 0)
  const log = running.lines.join('\n')
  assert.match(log, /pause emails who=local count=1/)
  assert.doesNotMatch(log, /canary/)
})

test('millpond dashboard refuses what would open it to others, and what it does not understand', async (t) => {
  const folder = scratch(t)
  const file = join(folder, 'tokens')
  writeFileSync(file, 'short\n')
  const store = ['--store', `sqlite:${join(folder, 'none.db')}`]
  for (const [args, message] of [
    [[...store, '--host', '0.0.0.0'], /can be reached by others: give a token/],
    [[...store, '--token-file', file], /16 characters/],
    [[], /--store is missing/],
    [[...store, ...store], /each has a name/],
    [['--store', 'a=memory:', '--store', 'a=memory:'], /the same name/],
    [store, /StoreUnavailable|there is no|does not exist/],
  ] as const) {
    const { code, err } = await ran(['dashboard', '--port', '0', ...args])
    assert.match(err, message)
    assert.notEqual(code, 0)
  }
})
