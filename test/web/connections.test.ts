/** What one connection may ask of a server of the user's own: requests at once, and time to read the answers. */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { toFastify } from '../../src/web/fastify.ts'
import { follow } from '../../src/web/index.ts'
import { toNode } from '../../src/web/node.ts'
import { MAX_OUTSTANDING } from '../../src/web/pipelining.ts'
import { until } from '../support/until.ts'
import { exchange, type WebHandler, webTest } from './serving.ts'

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void

const LISTENERS: Record<string, (handler: WebHandler) => Promise<Listener>> = {
  'node:http': async (handler) => toNode(handler),
  express: async (handler) => express().use(toNode(handler)),
  fastify: async (handler) => {
    const app = fastify()
    app.register(toFastify(handler))
    await app.ready()
    return app.routing
  },
}

const get = (path: string, ...headers: string[]) =>
  ['GET ', path, ' HTTP/1.1\r\nHost: x\r\n', ...headers.map((one) => `${one}\r\n`), '\r\n'].join('')

for (const [name, listenerFor] of Object.entries(LISTENERS)) {
  webTest(`${name}: requests of one connection are handled one after the other, in order`, async ({ serve }) => {
    let underWay = 0
    let most = 0
    const handler = async (request: Request) => {
      most = Math.max(most, ++underWay)
      await new Promise((resolve) => setImmediate(resolve))
      underWay--
      return new Response(`<${new URL(request.url).pathname}>`)
    }
    const origin = await serve(handler, await listenerFor(handler))
    const paths = Array.from({ length: MAX_OUTSTANDING }, (_, index) => `/${index}`)
    const sent = paths.map((path, index) => get(path, ...(index + 1 === paths.length ? ['Connection: close'] : [])))
    const heard = await exchange(origin, sent.join(''))
    assert.deepEqual(
      [...heard.matchAll(/<(.+?)>/g)].map(([, path]) => path),
      paths,
    )
    assert.equal(most, 1)
  })

  webTest(`${name}: a connection with more unanswered requests is cut, and its requests end`, async ({ serve }) => {
    let begun = 0
    let aborted = 0
    const handler = (request: Request) => {
      begun++
      return new Promise<Response>((resolve) => {
        request.signal.addEventListener('abort', () => {
          aborted++
          resolve(new Response())
        })
      })
    }
    const origin = await serve(handler, await listenerFor(handler))
    await exchange(origin, get('/').repeat(MAX_OUTSTANDING + 1)).catch(() => {})
    await until(() => aborted === 1)
    assert.equal(begun, 1)
  })

  webTest(`${name}: what comes after the last answer of a connection is not begun`, async ({ serve }) => {
    let begun = 0
    const handler = () => {
      begun++
      return new Response('last', { headers: { connection: 'close' } })
    }
    const origin = await serve(handler, await listenerFor(handler))
    const heard = await exchange(origin, get('/').repeat(3))
    assert.deepEqual([begun, heard.match(/HTTP\/1\.1/g)?.length], [1, 1])
  })
}

webTest('pipelined polls take one place of those who follow', async ({ pond, serve }) => {
  const { id } = await pond.queue('q').push(1)
  const origin = await serve(follow(pond, { maxFollowers: 2 }))
  const { hostname, port } = new URL(origin)
  let begun = false
  const socket = connect(Number(port), hostname, () => {
    socket.write(get(`/jobs/${id}`, 'Accept: text/event-stream') + get(`/jobs/${id}`, 'Prefer: wait=20').repeat(9))
  })
  socket.on('data', () => {
    begun = true
  })
  await until(() => begun)
  const second = await fetch(`${origin}/jobs/${id}`, { headers: { accept: 'text/event-stream' } })
  assert.equal(second.status, 200)
  await second.body?.cancel()
  socket.destroy()
})

webTest(
  'maxFollowersPerClient: one address has so many places, another one still has some',
  async ({ pond, serve }) => {
    const { id } = await pond.queue('q').push(1)
    const origin = await serve(follow(pond, { maxFollowers: 4, maxFollowersPerClient: 2 }))
    const { hostname, port } = new URL(origin)
    const statusFor = (localAddress: string) => {
      return new Promise<string>((resolve) => {
        const socket = connect({ host: hostname, port: Number(port), localAddress })
        socket.write(get(`/jobs/${id}`, 'Accept: text/event-stream'))
        socket.once('data', (chunk: Buffer) => resolve(chunk.toString().slice(9, 12)))
        open.push(socket)
      })
    }
    const open: Socket[] = []
    const statuses: string[] = []
    for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2']) {
      statuses.push(await statusFor(address))
    }
    assert.deepEqual(statuses, ['200', '200', '503', '200', '200', '503'])
    for (const socket of open) socket.destroy()
    await until(async () => {
      const again = await fetch(`${origin}/jobs/${id}`, { headers: { accept: 'text/event-stream' } })
      await again.body?.cancel()
      return again.status === 200
    })
  },
)

const BIG = 30_000_000
const ANSWERS: Record<string, () => Response> = {
  'written in one go': () => new Response(new Uint8Array(BIG), { headers: { 'content-length': String(BIG) } }),
  'without a length': () => new Response(new Uint8Array(BIG)),
  'the end of a stream': () =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(BIG))
          controller.close()
        },
      }),
    ),
}

for (const [kind, answer] of Object.entries(ANSWERS)) {
  webTest(`a client that does not read is cut off: ${kind}`, async ({ serve }) => {
    let kept: Socket | undefined
    const listener = toNode(answer, { stall: 50 })
    const origin = await serve(answer, (incoming, outgoing) => {
      kept = incoming.socket
      listener(incoming, outgoing)
    })
    const { hostname, port } = new URL(origin)
    const socket = connect(Number(port), hostname, () => socket.write(get('/')))
    socket.on('error', () => {})
    socket.pause()
    await until(() => kept?.destroyed === true)
    socket.destroy()
  })
}

webTest('a client that does not read is cut off: many small answers', async ({ serve }) => {
  let kept: Socket | undefined
  let answered = 0
  const handler = () => {
    answered++
    return new Response(new Uint8Array(60_000), { headers: { 'content-length': '60000' } })
  }
  const listener = toNode(handler, { stall: 50 })
  const origin = await serve(handler, (incoming, outgoing) => {
    kept = incoming.socket
    listener(incoming, outgoing)
  })
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.pause()
  let asked = 0
  await until(() => {
    // Goes on for as long as what lies between the two takes the answers.
    if (asked === answered) asked += Number(socket.write(get('/')))
    return kept?.destroyed === true
  })
  socket.destroy()
})
