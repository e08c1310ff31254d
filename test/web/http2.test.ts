/** HTTP/2: streams that clients reset, in every state of their answer, and requests that name two hosts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { serve } from '../../src/serve/index.ts'
import { follow } from '../../src/web/follow.ts'
import { toNode } from '../../src/web/node.ts'
import { until } from '../support/until.ts'
import type { WebHandler } from './serving.ts'

/** The handler behind a server of HTTP/2, and a client of it. */
async function overHttp2(t: TestContext, handler: WebHandler): Promise<ClientHttp2Session> {
  const server = createServer({ settings: { maxConcurrentStreams: 1000 } })
  const emitter: NodeJS.EventEmitter = server
  emitter.on('request', toNode(handler))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.after(async () => {
    client.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return client
}

function ask(
  client: ClientHttp2Session,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
) {
  const stream = client.request({ ':method': method, ':path': path, ...headers }, { endStream: body === '' })
  stream.on('error', () => {})
  if (body !== '') stream.end(body)
  return stream
}

const reset = (stream: ClientHttp2Stream) => stream.close(constants.NGHTTP2_CANCEL)

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = await once(stream, 'response')
  stream.resume()
  return Number(headers[':status'])
}

test('a reset aborts the signal of its request, whatever was sent by then; a whole answer does not', {
  timeout: 30_000,
}, async (t) => {
  const seen: Request[] = []
  const client = await overHttp2(t, (request) => {
    seen.push(request)
    if (request.url.endsWith('/whole')) return new Response('whole')
    if (request.url.endsWith('/large')) return new Response('x'.repeat(10_000_000))
    return new Promise(() => {})
  })
  const none = ask(client, 'GET', '/none')
  await until(() => seen.length === 1)
  reset(none)
  await until(() => seen[0]?.signal.aborted === true)

  const large = ask(client, 'GET', '/large')
  await once(large, 'response')
  reset(large)
  await until(() => seen[1]?.signal.aborted === true)

  const whole = ask(client, 'GET', '/whole')
  assert.equal(await text(whole), 'whole')
  await until(() => whole.closed)
  // The next answer comes after the end of the last one.
  assert.equal(await text(ask(client, 'GET', '/whole')), 'whole')
  assert.equal(seen[2]?.signal.aborted, false)
})

test('resets in the middle of streamed answers end their bodies and release what they hold', {
  timeout: 30_000,
}, async (t) => {
  let open = 0
  const client = await overHttp2(t, () => {
    open++
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(Buffer.alloc(200_000, 'x')),
      cancel: () => void open--,
    })
    return new Response(body)
  })
  const streams = Array.from({ length: 50 }, () => ask(client, 'GET', '/'))
  await Promise.all(streams.map((stream) => once(stream, 'response')))
  assert.equal(open, 50)
  for (const stream of streams) reset(stream)
  await until(() => open === 0)
})

test('polls that are reset leave their places to others', { timeout: 30_000 }, async (t) => {
  const pond = await Millpond.open('memory:')
  t.after(() => pond.close())
  const { id } = await pond.queue('q').push(1)
  let polls = 0
  const handler = follow(pond, { maxFollowers: 100 })
  const client = await overHttp2(t, (request) => {
    polls++
    return handler(request)
  })
  const streams = Array.from({ length: 100 }, () => ask(client, 'GET', `/jobs/${id}`, { prefer: 'wait=60' }))
  await until(() => polls === 100)
  const event = { accept: 'text/event-stream' }
  await until(async () => (await statusOf(ask(client, 'GET', `/jobs/${id}`, event))) === 503)
  for (const stream of streams) reset(stream)
  await until(async () => {
    const stream = ask(client, 'GET', `/jobs/${id}`, event)
    const status = await statusOf(stream)
    reset(stream)
    return status === 200
  })
})

test('no job is claimed for a stream that was reset', { timeout: 30_000 }, async (t) => {
  const served = await serve('memory:', { hosts: ['127.0.0.1'] })
  t.after(() => served.close({ timeout: 100 }))
  const begun: Request[] = []
  const client = await overHttp2(t, (request) => {
    if (request.url.endsWith('/claims')) begun.push(request)
    return served.handle(request)
  })
  const json = { 'content-type': 'application/json' }
  const claims = () => ask(client, 'POST', '/v1/queues/q/claims', { ...json, prefer: 'wait=60' }, '{}')
  const streams = Array.from({ length: 20 }, claims)
  await until(() => begun.length === 20)
  for (const stream of streams) reset(stream)
  await until(() => begun.every(({ signal }) => signal.aborted))
  await text(ask(client, 'POST', '/v1/queues/q/jobs', json, '{"data":1}'))
  const { jobs } = JSON.parse(await text(ask(client, 'POST', '/v1/queues/q/claims', json, '{}')))
  assert.deepEqual(
    jobs.map(({ attempt }: { attempt: number }) => attempt),
    [1],
  )
})

test('a Host that differs from :authority is refused', { timeout: 30_000 }, async (t) => {
  const client = await overHttp2(t, (request) => new Response(request.url))
  const authority = { ':authority': 'example.org' }
  assert.equal(await statusOf(ask(client, 'GET', '/', { ...authority, host: 'evil.example' })), 400)
  assert.equal(await text(ask(client, 'GET', '/', { ...authority, host: 'EXAMPLE.org' })), 'http://example.org/')
})
