/** A handler of Request and Response behind node:http, which is also what Express takes. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { connect as connectTwo, createServer as createTwo } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { toNode } from '../../src/web/node.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { exchange, isProblem, webTest } from './serving.ts'

webTest('method, URL, headers and body arrive as they are', async ({ serve }) => {
  const origin = await serve(async (request) => {
    const { method, url, headers } = request
    return Response.json({ method, url, sent: headers.get('x-sent'), body: await request.text() })
  })
  const ask = async (path: string, init?: RequestInit) => (await fetch(origin + path, init)).json()
  const [headers, body] = [{ 'x-sent': 'yés' }, 'x'.repeat(300_000)]
  assert.deepEqual(await ask('/a%20b/?c=%C3%BC&c=2', { method: 'PUT', headers, body }), {
    ...{ method: 'PUT', url: `${origin}/a%20b/?c=%C3%BC&c=2`, sent: 'yés', body },
  })
  assert.deepEqual(await ask('/'), { method: 'GET', url: `${origin}/`, sent: null, body: '' })
  const odd = await exchange(origin, 'GET //evil.example/x HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n')
  assert.match(odd, /"url":"http:\/\/a\.b\/\/evil\.example\/x"/)
})

webTest('status, headers, cookies and body go out as they are', async ({ serve }) => {
  const origin = await serve((request) => {
    const { pathname } = new URL(request.url)
    if (pathname === '/none') return new Response(null, { status: 204 })
    const headers = new Headers({ 'x-one': 'yes' })
    headers.append('set-cookie', 'a=1; Path=/')
    headers.append('set-cookie', 'b=2')
    return new Response(new Uint8Array([0, 255, 10]), { status: 418, statusText: 'Teapot', headers })
  })
  const response = await fetch(origin)
  assert.deepEqual([response.status, response.statusText, response.headers.get('x-one')], [418, 'Teapot', 'yes'])
  assert.deepEqual(response.headers.getSetCookie(), ['a=1; Path=/', 'b=2'])
  assert.deepEqual([...new Uint8Array(await response.arrayBuffer())], [0, 255, 10])
  const none = await fetch(`${origin}/none`)
  assert.deepEqual([none.status, await none.text()], [204, ''])
  const head = await fetch(origin, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [418, ''])
})

webTest('a body is read no faster than it is asked for', async ({ serve }) => {
  let step = () => {}
  let read = 0
  const origin = await serve(async (request) => {
    for await (const chunk of request.body ?? []) {
      read += chunk.byteLength
      await new Promise<void>((resolve) => {
        step = resolve
      })
      if (read > 10_000_000) return new Response('enough')
    }
    return new Response('all')
  })
  let given = 0
  const body = new ReadableStream({
    pull(controller) {
      given += 1_000_000
      controller.enqueue(new Uint8Array(1_000_000))
      if (given === 50_000_000) controller.close()
    },
  })
  const answer = fetch(origin, { method: 'POST', body, duplex: 'half' })
  await until(() => read > 0)
  // Nobody asks for more: what lies between the two has its fill, and no more is taken from the source.
  let before = -1
  await until(async () => {
    const still = given === before
    before = given
    await new Promise((resolve) => setTimeout(resolve, 50))
    return still
  })
  assert.ok(given < 50_000_000, `${given} bytes were taken`)
  const pump = setInterval(() => step(), 0)
  assert.equal(await (await answer).text(), 'enough')
  clearInterval(pump)
})

webTest('an answer is sent no faster than it is read, and hanging up stops it', async ({ serve }) => {
  let made = 0
  let cancelled = 0
  let aborted = 0
  const origin = await serve((request) => {
    request.signal.addEventListener('abort', () => aborted++)
    return new Response(
      new ReadableStream({
        pull(controller) {
          made += 1_000_000
          controller.enqueue(new Uint8Array(1_000_000))
        },
        cancel: () => {
          cancelled++
        },
      }),
    )
  })
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname, () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  socket.pause()
  let before = -1
  await until(async () => {
    const still = made > 0 && made === before
    before = made
    await new Promise((resolve) => setTimeout(resolve, 50))
    return still
  })
  assert.ok(made < 50_000_000, `${made} bytes were made`)
  assert.deepEqual([aborted, cancelled], [0, 0])
  socket.destroy()
  await until(() => aborted === 1 && cancelled === 1)
})

webTest('a client that never reads is cut off, and what feeds it is stopped', async ({ serve }) => {
  let cancelled = 0
  const handler = () =>
    new Response(
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(1_000_000)),
        cancel: () => {
          cancelled++
        },
      }),
    )
  const { hostname, port } = new URL(await serve(handler, toNode(handler, { stall: 50 })))
  const socket = connect(Number(port), hostname, () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'))
  socket.on('error', () => {})
  socket.pause()
  await until(() => cancelled === 1)
  socket.destroy()
})

webTest('a request that was answered in full is not aborted', async ({ serve }) => {
  let aborted = false
  let signal: AbortSignal | undefined
  const origin = await serve(async (request) => {
    signal = request.signal
    signal.addEventListener('abort', () => {
      aborted = true
    })
    return new Response(await request.text())
  })
  assert.equal(await (await fetch(origin, { method: 'POST', body: 'x', headers: { connection: 'close' } })).text(), 'x')
  assert.ok(signal)
  assert.equal(aborted, false)
})

webTest('the connection serves the next request, whatever became of the body', async ({ serve }) => {
  const origin = await serve((request) => new Response(request.method))
  const body = 'x'.repeat(100_000)
  const one = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const heard = await exchange(origin, `${one}${one}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  assert.equal(heard.match(/HTTP\/1\.1 200/g)?.length, 3)
  assert.match(heard, /GET/)
})

webTest('a client that goes on sending after its answer is cut off', async ({ serve }) => {
  const { hostname, port } = new URL(await serve(() => new Response('enough')))
  let heard = ''
  let closed = false
  const socket = connect(Number(port), hostname)
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    closed = true
  })
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n')
  const trickle = setInterval(() => socket.write('x'), 10)
  await until(() => closed)
  clearInterval(trickle)
  assert.match(heard, /enough/)
})

webTest('a handler that rejects: 500 without particulars, or the error to whoever comes next', async ({ serve }) => {
  const handler = () => Promise.reject(new TypeError('hunter2'))
  const warnings: Error[] = []
  const listen = (warning: Error) => warnings.push(warning)
  process.on('warning', listen)
  const document = await isProblem(await fetch(await serve(handler)), 500)
  assert.doesNotMatch(JSON.stringify(document), /hunter2/)
  await until(() => warnings.length === 1)
  process.off('warning', listen)
  const passed: unknown[] = []
  const listener = toNode(handler)
  const origin = await serve(handler, (incoming, outgoing) =>
    listener(incoming, outgoing, (error) => {
      passed.push(error)
      outgoing.end('handled')
    }),
  )
  assert.equal(await (await fetch(origin)).text(), 'handled')
  assert.deepEqual(passed.map(String), ['TypeError: hunter2'])
})

webTest('a body that breaks midway cuts the connection', async ({ serve }) => {
  const origin = await serve(() => {
    let times = 0
    return new Response(
      new ReadableStream({
        pull(controller) {
          if (times++ === 0) controller.enqueue(new Uint8Array(10))
          else controller.error(new Error('broke'))
        },
      }),
    )
  })
  await assert.rejects(async () => (await fetch(origin)).arrayBuffer())
})

webTest('an answer that somebody else has begun is left alone', async ({ serve }) => {
  let cancelled = false
  const handler = () =>
    new Response(
      new ReadableStream({
        cancel: () => {
          cancelled = true
        },
      }),
    )
  const listener = toNode(handler)
  const origin = await serve(handler, (incoming, outgoing) => {
    outgoing.end('mine')
    listener(incoming, outgoing)
  })
  assert.equal(await (await fetch(origin)).text(), 'mine')
  await until(() => cancelled)
})

webTest('HTTP/2, by the compatible side of node:http2', async () => {
  const server = createTwo()
  const emitter: NodeJS.EventEmitter = server
  emitter.on(
    'request',
    toNode(async (request) => Response.json([request.url, await request.text()])),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = connectTwo(origin)
  const stream = client.request({ ':method': 'POST', ':path': '/a?b' })
  stream.end('hello')
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  assert.deepEqual(JSON.parse(text), [`${origin}/a?b`, 'hello'])
  client.close()
  await new Promise((resolve) => server.close(resolve))
})

webTest('its options are checked when it is made', async () => {
  assert.throws(() => toNode(() => new Response(), { stall: 0 }), coded('InvalidOption', /stall/))
  assert.ok(createServer(toNode(() => new Response())))
})
