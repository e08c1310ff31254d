/** What one connection, and one client, may take from the others: places, time and memory. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { MAX_OUTSTANDING } from '../../src/web/pipelining.ts'
import { until } from '../support/until.ts'
import { exchange } from '../web/serving.ts'
import { type Bench, type Client, serveTest } from './client.ts'

const SHORT = {
  headersTimeout: 50,
  requestTimeout: 100,
  keepAliveTimeout: 50,
  connectionsCheckingInterval: 20,
  stall: 50,
  linger: 50,
}

const get = (path: string, ...headers: string[]) =>
  ['GET ', path, ' HTTP/1.1\r\nHost: localhost\r\n', ...headers.map((one) => `${one}\r\n`), '\r\n'].join('')
const claim = (queue: string, ...headers: string[]) =>
  [`POST /v1/queues/${queue}/claims HTTP/1.1`, 'Host: localhost', 'Content-Length: 0', ...headers, '', ''].join('\r\n')

interface Peer {
  socket: Socket
  heard: string
  /** The server has closed its side, or cut the connection. */
  gone: boolean
}

/** A client that keeps its side open whatever the server does. */
function open(origin: string, sent: string, localAddress = '127.0.0.1'): Peer {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), localAddress, allowHalfOpen: true })
  const peer: Peer = { socket, heard: '', gone: false }
  if (sent !== '') socket.write(sent)
  socket.on('data', (chunk: Buffer) => {
    peer.heard += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  for (const end of ['end', 'close']) {
    socket.on(end, () => {
      peer.gone = true
    })
  }
  return peer
}

async function healthy(origin: string): Promise<boolean> {
  try {
    return (await fetch(`${origin}/healthz`, { headers: { connection: 'close' } })).ok
  } catch {
    return false
  }
}

const HALF_OPEN: Record<string, string> = {
  'nothing at all': '',
  'half the headers': 'GET /healthz HTTP/1.1\r\nHost: loc',
  'half a body':
    'POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{',
  'no HTTP': 'nonsense\r\n\r\n',
  'headers that are too long': `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
  'a request that is answered': get('/healthz'),
  'a request that is the last': get('/healthz', 'Connection: close'),
}

for (const [kind, sent] of Object.entries(HALF_OPEN)) {
  serveTest(`clients that send ${kind} and then keep their side open do not take the connections`, async (bench) => {
    const { origin } = await bench.listen(await bench.open(), { ...SHORT, maxConnections: 4 })
    const peers = Array.from({ length: 4 }, () => open(origin, sent))
    await until(() => healthy(origin), 'a free connection')
    for (const { socket } of peers) socket.destroy()
  })
}

serveTest('a client that is refused gets to read why', async (bench) => {
  const { origin } = await bench.listen(await bench.open(), { ...SHORT, linger: 60_000 })
  const peer = open(origin, '')
  await until(() => peer.gone && peer.heard.includes('"status":408'))
  const closed = once(peer.socket, 'close')
  peer.socket.end()
  await closed
})

serveTest('clients that do not read their answers do not take the connections', async (bench) => {
  const client = await bench.open()
  const { origin } = await bench.listen(client, { ...SHORT, requestTimeout: 20_000, maxConnections: 4 })
  for (let job = 0; job < 5; job++) await client.push('big', 'x'.repeat(1_000_000))
  const list = get('/v1/queues/big/jobs?state=waiting&limit=100')
  const peers = ['', list, list.repeat(9), get('/healthz')].map((more) => open(origin, list + more))
  for (const { socket } of peers) socket.pause()
  await until(() => healthy(origin), 'a free connection')
  for (const { socket } of peers) socket.destroy()
})

/** Lets every request in, and counts. */
function counted(client: Client): { begun: number; most: number } {
  const { handle } = client.served
  const count = { begun: 0, most: 0, now: 0 }
  client.served.handle = async (request) => {
    count.begun++
    count.most = Math.max(count.most, ++count.now)
    try {
      return await handle(request)
    } finally {
      count.now--
    }
  }
  return count
}

serveTest('pipelined polls take one place, and the others wait their turn', async (bench) => {
  const client = await bench.open({ maxWaiting: 2, maxWaitingPerClient: 2 })
  const count = counted(client)
  const { origin } = await bench.listen(client)
  const greedy = open(origin, claim('q', 'Prefer: wait=50').repeat(10))
  await until(() => count.begun > 0)
  const second = open(origin, claim('q', 'Prefer: wait=50'))
  await until(() => count.begun > 1)
  assert.deepEqual([count.begun, count.most], [2, 2])
  await client.push('q', 1)
  await client.push('q', 2)
  await until(() => /preference-applied/i.test(greedy.heard) && /preference-applied/i.test(second.heard))
  for (const { socket } of [greedy, second]) socket.destroy()
})

const FLOODS: Record<string, string> = {
  polls: claim('q', 'Prefer: wait=50'),
  'requests without a token': get('/v1/queues'),
  'requests that expect what is not known': get('/v1/queues', 'Expect: miracles'),
  'requests without a Host': 'GET /v1/queues HTTP/1.1\r\n\r\n',
}

for (const [kind, sent] of Object.entries(FLOODS)) {
  serveTest(`a connection that pipelines thousands of ${kind} is cut`, async (bench) => {
    const client = await bench.open()
    const count = counted(client)
    const { origin } = await bench.listen(client)
    const peer = open(origin, claim('q', 'Prefer: wait=50') + sent.repeat(2000))
    await until(() => peer.gone)
    assert.ok(count.begun <= 1, String(count.begun))
    assert.ok(await healthy(origin))
  })
}

serveTest('of what a connection has sent, no more is parsed than may be unanswered', async (bench) => {
  const { origin } = await bench.listen(await bench.open())
  let made = 0
  const count = () => {
    made++
  }
  subscribe('http.server.request.start', count)
  try {
    const peer = open(origin, claim('q', 'Prefer: wait=50') + get('/v1/queues').repeat(2000))
    await until(() => peer.gone)
  } finally {
    unsubscribe('http.server.request.start', count)
  }
  assert.ok(made <= MAX_OUTSTANDING, `${made} requests`)
})

serveTest('as many as may be unanswered are answered, in order', async (bench) => {
  const client = await bench.open()
  const { origin } = await bench.listen(client)
  const queues = [...Array.from({ length: 15 }, (_, index) => `q${index}`), 'last']
  for (const queue of queues) await client.push(queue, 1)
  const sent = queues.slice(0, -1).map((queue) => get(`/v1/queues/${queue}`))
  const heard = await exchange(origin, sent.join('') + get('/v1/queues/last', 'Connection: close'))
  const names = [...heard.matchAll(/"queue":"(\w+)"/g)].map(([, name]) => name)
  assert.deepEqual(names, queues)
})

serveTest('an unknown expectation is ignored; a request without a Host is refused', async (bench) => {
  const { origin } = await bench.listen(await bench.open())
  assert.match(await exchange(origin, get('/healthz', 'Expect: miracles', 'Connection: close')), /^HTTP\/1\.1 200 /)
  const hostless = await exchange(origin, 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n')
  assert.match(hostless, /^HTTP\/1\.1 400 [\s\S]*problem\+json[\s\S]*no Host header/)
})

for (const leaving of ['stays', 'hangs up']) {
  serveTest(`a stop does not wait for requests whose turn never comes: the client ${leaving}`, async (bench) => {
    const client = await bench.open()
    const count = counted(client)
    const { origin, server } = await bench.listen(client)
    const peer = open(origin, claim('q', 'Prefer: wait=50').repeat(3))
    await until(() => count.begun === 1)
    if (leaving === 'hangs up') peer.socket.destroy()
    await server.stop(20_000)
    assert.equal(count.begun, 1)
    peer.socket.destroy()
  })
}

serveTest('a connection is closed after so many requests, and says so before', async (bench) => {
  const { origin } = await bench.listen(await bench.open(), { maxRequests: 3 })
  const heard = await exchange(origin, get('/healthz').repeat(5))
  const kept = [...heard.matchAll(/^connection: (\S+)/gim)].map(([, value]) => value)
  assert.deepEqual(kept, ['keep-alive', 'keep-alive', 'close'])
})

/** Of each kind that waits; `waits` tells from an answer or the start of one whether there was a place. */
const KINDS: Record<string, { ask: (id: string) => string; waits: (peer: Peer) => boolean; refused: RegExp }> = {
  claims: { ask: () => claim('empty', 'Prefer: wait=50'), waits: ({ heard }) => heard === '', refused: /"jobs":\[\]/ },
  pushes: {
    ask: () =>
      'POST /v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\nPrefer: wait=50\r\n\r\n{"data":1}',
    waits: ({ heard }) => heard === '',
    refused: /^HTTP\/1\.1 202 /,
  },
  polls: {
    ask: (id) => get(`/v1/jobs/${id}`, 'Prefer: wait=50'),
    waits: ({ heard }) => heard === '',
    refused: /200 OK/,
  },
  streams: {
    ask: (id) => get(`/v1/jobs/${id}`, 'Accept: text/event-stream'),
    waits: ({ heard }) => heard.includes('event: state'),
    refused: /^HTTP\/1\.1 503 /,
  },
}

async function shares({ ask, waits, refused }: (typeof KINDS)[string], bench: Bench): Promise<void> {
  const client = await bench.open({ maxWaiting: 4 })
  const id = await client.push('followed', 1)
  const count = counted(client)
  const { origin } = await bench.listen(client)
  const peers: Peer[] = []
  for (const address of ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.2', '127.0.0.2', '127.0.0.2']) {
    peers.push(open(origin, ask(id), address))
    await until(() => count.begun === peers.length)
  }
  const [third, sixth] = [peers[2], peers[5]]
  assert.ok(third && sixth)
  await until(() => refused.test(third.heard) && refused.test(sixth.heard))
  await until(() => peers.every((peer) => peer === third || peer === sixth || waits(peer)))
  for (const { socket } of peers) socket.destroy()
}

for (const [name, kind] of Object.entries(KINDS)) {
  serveTest(`one client has half the places of ${name}, the others have the other half`, (bench) => shares(kind, bench))
}
