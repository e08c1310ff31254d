/** The limits of a body hold whichever way a hook reads it. */
import assert from 'node:assert/strict'
import { serve } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { type AcceptOptions, accept } from '../../src/web/index.ts'
import { toNode } from '../../src/web/node.ts'
import { acceptedId, exchange, isProblem, raw, webTest } from './serving.ts'

const LIMIT = 1000
const FAR_OVER = 20_000_000

type Reading = (request: Request, body: () => Promise<unknown>) => Promise<unknown>

async function readAll(stream: ReadableStream<Uint8Array> | null): Promise<string> {
  return new Response(stream).text()
}

/** Every way to a body that a Request has. Each gives the text that was sent. */
const WAYS: Readonly<Record<string, Reading>> = {
  body: async (_, body) => JSON.stringify(await body()),
  'request.text()': (request) => request.text(),
  'request.json()': async (request) => JSON.stringify(await request.json()),
  'request.arrayBuffer()': async (request) => Buffer.from(await request.arrayBuffer()).toString(),
  'request.bytes()': async (request) => Buffer.from(await request.bytes()).toString(),
  'request.blob()': async (request) => (await request.blob()).text(),
  'request.body': (request) => readAll(request.body),
  'request.clone()': (request) => request.clone().text(),
  'a clone of a clone': (request) => request.clone().clone().text(),
  'request.clone().body': (request) => readAll(request.clone().body),
  'a clone, then body': async (request, body) => {
    assert.equal(await request.clone().text(), JSON.stringify(await body()))
    return request.text().catch(() => '"read"')
  },
}

/** Text of so many bytes as JSON. */
const text = (size: number) => JSON.stringify('x'.repeat(size - 2))

/** A body that says nothing of its size, and counts what is asked of it. */
function endless() {
  let sent = 0
  const piece = new Uint8Array(500).fill(0x20)
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        sent += piece.length
        if (sent > FAR_OVER) controller.close()
        else controller.enqueue(piece)
      },
    },
    { highWaterMark: 0 },
  )
  const init: RequestInit = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: stream,
    duplex: 'half',
  }
  return { request: new Request('http://localhost/', init), sent: () => sent }
}

for (const [way, read] of Object.entries(WAYS)) {
  webTest(`${way} in data: a body within the limit is read, one over it is a 413`, async ({ pond }) => {
    const queue = pond.queue('q')
    const handler = accept(queue, { maxBody: LIMIT, data: read })
    const id = await acceptedId(await handler(raw(text(LIMIT), 'application/json')))
    const stored = (await pond.job(id))?.data
    assert.ok(stored === text(LIMIT) || stored === '"read"', String(stored))
    await isProblem(await handler(raw(text(LIMIT + 1), 'application/json')), 413, 'PayloadTooLarge')
    const { request, sent } = endless()
    await isProblem(await handler(request), 413, 'PayloadTooLarge')
    assert.ok(sent() <= 2 * LIMIT, `${sent()} bytes were taken`)
    assert.equal((await queue.stats()).counts.waiting, 1)
  })
}

webTest('request.formData() in data: forms with files within the limit, 413 over it', async ({ pond }) => {
  const queue = pond.queue<object>('q')
  const handler = accept(queue, {
    maxBody: LIMIT,
    data: async (request) => {
      const form = await request.formData()
      const file = form.get('file')
      return { name: form.get('name'), file: file instanceof File ? await file.text() : null }
    },
  })
  const form = async (size: number): Promise<Request> => {
    const data = new FormData()
    data.append('name', 'ada')
    data.append('file', new Blob(['x'.repeat(size)]), 'x.txt')
    const made = new Response(data)
    const type = made.headers.get('content-type') ?? ''
    return raw(await made.arrayBuffer(), type)
  }
  const id = await acceptedId(await handler(await form(10)))
  assert.deepEqual((await pond.job(id))?.data, { name: 'ada', file: 'x'.repeat(10) })
  await isProblem(await handler(await form(FAR_OVER)), 413, 'PayloadTooLarge')
  await isProblem(
    await handler(raw(`a=${'x'.repeat(LIMIT)}`, 'application/x-www-form-urlencoded')),
    413,
    'PayloadTooLarge',
  )
})

webTest('in every hook, and whatever a hook makes of the error', async ({ pond }) => {
  const queue = pond.queue('q')
  const swallowed = (request: Request) => request.text().catch(() => 'nothing')
  const cloned = async (request: Request) => {
    await request.clone().text()
    return true
  }
  const hooks: AcceptOptions[] = [
    { guard: cloned },
    { data: swallowed },
    { data: () => 1, push: async (request) => ({ key: await swallowed(request) }) },
    { data: () => 1, idempotency: { scope: swallowed } },
    {
      data: async (request) => {
        await request.text().catch((cause: unknown) => {
          throw new Error('wrapped', { cause })
        })
      },
    },
  ]
  for (const options of hooks) {
    const handler = accept(queue, { maxBody: LIMIT, ...options })
    const { request, sent } = endless()
    request.headers.set('idempotency-key', 'k')
    await isProblem(await handler(request), 413, 'PayloadTooLarge')
    assert.ok(sent() <= 2 * LIMIT, `${sent()} bytes were taken`)
  }
  assert.equal((await queue.stats()).counts.waiting, 0)
})

webTest('the request stays the one that was given, and its body can be read after a refusal', async ({ pond }) => {
  const seen = new WeakSet<Request>()
  const request = raw('1', 'application/json')
  seen.add(request)
  const handler = accept(pond.queue('q'), {
    guard: (one) => (seen.has(one) ? new Response('no', { status: 401 }) : true),
  })
  assert.equal((await handler(request)).status, 401)
  assert.equal(request.bodyUsed, false)
  assert.equal(await request.text(), '1')
  assert.equal(request.bodyUsed, true)
  // Two handlers that look at one request: the narrower one's limit holds.
  const narrow = accept(pond.queue('q'), { maxBody: 3, data: (one) => one.text() })
  const twice = raw('12345', 'application/json')
  await accept(pond.queue('q'), { maxBody: 9, guard: () => new Response() })(twice)
  await isProblem(await narrow(twice), 413, 'PayloadTooLarge')
})

webTest('a body that does not come, or breaks off, in request.json(): 408, 400', async ({ pond, serve }) => {
  const queue = pond.queue('q')
  const origin = await serve(accept(queue, { bodyTimeout: 50, data: (request) => request.json() }))
  const head = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":'
  assert.match(await exchange(origin, head), /^HTTP\/1\.1 408 [\s\S]*did not come within 50 ms/)
  const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) })
  const broken = new Request(origin, { method: 'POST', body, duplex: 'half' })
  await isProblem(await accept(queue, { data: (request) => request.json() })(broken), 400, 'PayloadNotDecodable')
  assert.equal((await queue.stats()).counts.waiting, 0)
})

webTest("under Hono also through the context's own readers, and under Express", async ({ pond, serve: behind }) => {
  const queue = pond.queue('q')
  const app = new Hono()
  app.post('/', (c) => accept(queue, { maxBody: LIMIT, data: () => c.req.json() })(c.req.raw))
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  const post = (origin: string, size: number) =>
    fetch(origin, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text(size) })
  try {
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    assert.ok(address !== null && typeof address === 'object')
    const origin = `http://127.0.0.1:${address.port}`
    await acceptedId(await post(origin, LIMIT))
    await isProblem(await post(origin, LIMIT + 1), 413, 'PayloadTooLarge')
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
  const own = express()
  own.post('/', toNode(accept(queue, { maxBody: LIMIT, data: (request) => request.json() })))
  const origin = await behind(() => new Response(), own)
  await acceptedId(await post(origin, LIMIT))
  await isProblem(await post(origin, FAR_OVER), 413, 'PayloadTooLarge')
  assert.equal((await queue.stats()).counts.waiting, 2)
})
