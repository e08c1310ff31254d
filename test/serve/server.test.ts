/** The service behind node:http: long polls over real connections, bounds, and the stop. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import Fastify from 'fastify'
import { toFastify } from '../../src/web/fastify.ts'
import { until } from '../support/until.ts'
import { exchange } from '../web/serving.ts'
import { answered, type Client, isProblem, onStores, serveTest } from './client.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

onStores('stopping', {
  'ends long polls with what they know, streams and claims too, and lets what is under way finish': async ({
    open,
    listen,
  }) => {
    const client = await open()
    const { origin, server } = await listen(client)
    const id = await client.push('q', 1)
    const polls = [
      fetch(`${origin}/v1/jobs/${id}`, { headers: { prefer: 'wait=50' } }),
      fetch(`${origin}/v1/jobs/${id}`, { headers: { accept: 'text/event-stream' } }),
      fetch(`${origin}/v1/queues/empty/claims`, { method: 'POST', headers: { prefer: 'wait=50' } }),
      fetch(`${origin}/v1/queues/r/jobs`, {
        method: 'POST',
        headers: { ...JSON_TYPE, prefer: 'wait=50' },
        body: '{"data":1}',
      }),
    ]
    // One whose body is still to come.
    let finish = () => {}
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"data":'))
        finish = () => {
          controller.enqueue(new TextEncoder().encode('2}'))
          controller.close()
        }
      },
    })
    const slow = fetch(`${origin}/v1/queues/s/jobs`, { method: 'POST', headers: JSON_TYPE, body, duplex: 'half' })
    // The job pushed with a wait is there: its request waits now. The stream has begun.
    await until(async () => typeof (await client.get('/v1/queues/r')).body.oldestWaiting === 'number')
    await polls[1]
    await sleep(50)
    const stopped = server.stop(20_000)
    const [poll, stream, claim, push] = await Promise.all(polls)
    assert.ok(poll && stream && claim && push)
    const { status, body: told } = await answered(poll)
    assert.deepEqual([status, told.state], [200, 'waiting'])
    assert.match(await stream.text(), /^event: state\n/)
    assert.deepEqual((await answered(claim)).body, { jobs: [] })
    assert.equal((await answered(push)).status, 202)
    // Not fetch: it might use a connection that it has kept, and would get an answer.
    await assert.rejects(exchange(origin, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'), /refused|ECONNREFUSED/)
    finish()
    const late = await slow
    assert.deepEqual([late.status, late.headers.get('connection')], [202, 'close'])
    await stopped
    assert.equal((await client.claim('s')).length, 1)
  },

  'cuts what does not finish in time': async ({ open, listen }) => {
    const { origin, server } = await listen(await open())
    const hanging = exchange(
      origin,
      'POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n{',
    ).catch(() => 'cut before a word')
    await until(async () => (await fetch(`${origin}/healthz`)).ok)
    await server.stop(50)
    assert.doesNotMatch(await hanging, /HTTP\/1\.1 2/)
  },
})

serveTest('a worker that hangs up while it waits takes no job along', async ({ open, listen }) => {
  const client = await open()
  const { handle } = client.served
  let begun = 0
  let ended = 0
  client.served.handle = async (request) => {
    begun++
    try {
      return await handle(request)
    } finally {
      ended++
    }
  }
  const { origin } = await listen(client)
  const { hostname, port } = new URL(origin)
  for (let times = 1; times <= 20; times++) {
    const socket = connect(Number(port), hostname)
    socket.write('POST /v1/queues/q/claims HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=50\r\n\r\n')
    await until(() => begun === times)
    socket.destroy()
    await until(() => ended === times)
  }
  const id = await client.push('q', 1)
  const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
  assert.deepEqual([job?.id, job?.attempt], [id, 1])
})

/** A claim whose answer is made, and then held back for good. @returns what cuts its connection */
async function unsent<Listening extends { origin: string }>(
  client: Client,
  listen: (client: Client) => Promise<Listening>,
): Promise<Listening & { cut: () => void }> {
  const { handle } = client.served
  let made = false
  client.served.handle = async (request) => {
    await handle(request)
    made = true
    return new Promise<Response>(() => {})
  }
  const listening = await listen(client)
  const { hostname, port } = new URL(listening.origin)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(
    'POST /v1/queues/q/claims HTTP/1.1\r\nHost: localhost\r\nX-Requested-With: x\r\nContent-Length: 0\r\n\r\n',
  )
  await until(() => made)
  client.served.handle = handle
  return { ...listening, cut: () => socket.destroy() }
}

serveTest('an answer that cannot be sent gives its jobs back', async ({ open, listen }) => {
  const client = await open()
  await client.push('q', 1)
  const { cut } = await unsent(client, listen)
  assert.deepEqual(await client.claim('q'), [])
  cut()
  const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
  assert.deepEqual([job?.fence, job?.attempt], [2, 1])
})

serveTest('behind Fastify as well', async ({ open }) => {
  const client = await open()
  await client.push('q', 1)
  const app = Fastify()
  try {
    const { cut } = await unsent(client, async ({ served }) => {
      await app.register(toFastify((request) => served.handle(request)))
      return { origin: await app.listen({ host: '127.0.0.1', port: 0 }) }
    })
    cut()
    const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
    assert.deepEqual([job?.fence, job?.attempt], [2, 1])
  } finally {
    await app.close()
  }
})

onStores('claims when the service ends', {
  'an answer that the stop cuts gives its jobs back before the store closes': async ({ open, listen, url }) => {
    const client = await open()
    const id = await client.push('q', 1)
    const { server } = await unsent(client, listen)
    await server.stop(20)
    client.served.stop()
    if (url === 'memory:') {
      assert.equal(await client.state(id), 'waiting')
      return
    }
    await client.served.close()
    const [job] = await (await open()).claim('q')
    assert.deepEqual([job?.id, job?.attempt], [id, 1])
  },
})

onStores('closing while a claim is under way', {
  'what nobody waits for any more is given back before the store closes': async ({ open, url }) => {
    if (url === 'memory:') return
    const client = await open()
    const id = await client.push('q', 1)
    const hangUp = new AbortController()
    const claiming = client.raw('POST', '/v1/queues/q/claims', { headers: JSON_TYPE, signal: hangUp.signal })
    // By then the store is asked, and has not answered yet.
    for (let tick = 0; tick < 50; tick++) await undefined
    hangUp.abort()
    await client.served.close()
    await claiming
    const [job] = await (await open()).claim('q')
    assert.deepEqual([job?.id, job?.attempt], [id, 1])
    // The first claim had taken 1.
    assert.ok(Number(job?.fence) > 1)
  },
})

onStores('a signal that is aborted', {
  'after the answer, as by Deno.serve: the claim holds': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1)
    const over = new AbortController()
    const { body } = await answered(
      await client.raw('POST', '/v1/queues/q/claims', { headers: JSON_TYPE, signal: over.signal }),
    )
    assert.ok(Array.isArray(body.jobs))
    over.abort()
    assert.deepEqual(await client.claim('q'), [])
    const completed = await client.post(`/v1/queues/q/jobs/${id}/complete`, { fence: body.jobs[0].fence })
    assert.equal(completed.status, 200, JSON.stringify(completed.body))
  },

  'before the answer: nothing is claimed, or it is given back': async ({ open }) => {
    const client = await open()
    await client.push('q', 1)
    for (const ticks of [0, 1, 2, 5]) {
      const hangUp = new AbortController()
      const claiming = client.raw('POST', '/v1/queues/q/claims', { headers: JSON_TYPE, signal: hangUp.signal })
      for (let tick = 0; tick < ticks; tick++) await undefined
      hangUp.abort()
      await claiming
    }
    const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
    assert.equal(job?.attempt, 1)
  },
})

serveTest('what is no HTTP, and headers over 16 KiB, are refused with a problem document', async ({ open, listen }) => {
  const { origin } = await listen(await open())
  const broken: [string, number][] = [
    ['nonsense\r\n\r\n', 400],
    ['GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n', 400],
    [`GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 431],
    [
      'POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    ['GET /healthz HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', 400],
  ]
  for (const [sent, status] of broken) {
    const heard = await exchange(origin, sent)
    assert.match(heard, new RegExp(`^HTTP/1\\.1 ${status} `), sent.slice(0, 60))
    // Node itself refuses what has no Host, without a body.
    if (sent === 'GET /healthz HTTP/1.1\r\n\r\n') continue
    const document = JSON.parse(heard.slice(heard.indexOf('\r\n\r\n')))
    const title = status === 431 ? 'Request Header Fields Too Large' : 'Bad Request'
    assert.deepEqual([document.status, document.title], [status, title], sent.slice(0, 60))
  }
  const traced = await exchange(origin, 'TRACE /v1/queues HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  assert.match(traced, /^HTTP\/1\.1 405 [\s\S]*\r\nallow: GET, HEAD\r\n/i)
  assert.equal((await fetch(`${origin}/healthz`)).status, 200)
})

serveTest('a body over the limit is refused before it has come', async ({ open, listen }) => {
  const { origin } = await listen(await open())
  const head = 'POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  assert.match(await exchange(origin, `${head}Content-Length: 3000000\r\n\r\n`, '\r\n\r\n'), /^HTTP\/1\.1 413 /)
  const post = (data: unknown) =>
    fetch(`${origin}/v1/queues/q/jobs`, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ data }) })
  isProblem(await answered(await post('x'.repeat(2_200_000))), 413, 'PayloadTooLarge')
  assert.equal((await post('x'.repeat(1_000_000))).status, 202)
})
