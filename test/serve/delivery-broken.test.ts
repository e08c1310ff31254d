/** Deliveries to receivers whose answers are no good HTTP. Each kind has one outcome, and none an error that nobody listens to. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Delivery } from '../../src/webhook/delivery.ts'
import { until } from '../support/until.ts'
import { type Client, serveTest } from './client.ts'
import { rawReceiver } from './raw-receiver.ts'

function delivery(url: string, more: Partial<Delivery> = {}): Delivery {
  return { queue: 'hooks', url: new URL(url), keys: [randomBytes(32)], concurrency: 3, timeout: 10_000, ...more }
}

/** What became of the job once its attempt is over. */
async function outcome(client: Client, id: string): Promise<Record<string, unknown>> {
  let job: Record<string, unknown> = {}
  await until(
    async () => {
      job = (await client.get(`/v1/jobs/${id}`)).body
      return job.startedAt !== undefined && job.state !== 'running'
    },
    `the attempt of ${id} to be over, is ${String(job.state)}`,
  )
  return job
}

function messageOf({ error }: Record<string, unknown>): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : ''
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const SIX_GZIPS = `HTTP/1.1 200 OK\r\nContent-Encoding: ${Array(6).fill('gzip')}\r\nContent-Length: 100\r\n\r\nabc`
const JSON_1 = `${OK}Content-Length: 7\r\n\r\n{"n":1}`

/** Goes on writing for as long as anybody reads. */
function endlessly(socket: Socket, first: string, again: string): void {
  socket.write(first)
  const more = () => {
    while (!socket.destroyed && socket.write(again.repeat(50)));
  }
  socket.on('drain', more)
  more()
}

interface Kind {
  answer(socket: Socket): void
  state: 'done' | 'scheduled' | 'dead'
  result?: unknown
  message?: RegExp
  /** Ends by the time limit alone. */
  late?: true
}

const KINDS: Readonly<Record<string, Kind>> = {
  'six codings, cut off': { answer: (socket) => socket.end(SIX_GZIPS), state: 'done' },
  'six codings, left open': { answer: (socket) => socket.write(SIX_GZIPS), state: 'done', late: true },
  'six codings, reset': {
    answer: (socket) => socket.write(SIX_GZIPS, () => socket.resetAndDestroy()),
    state: 'done',
  },
  'a coding that is none': {
    answer: (socket) => socket.write(`${OK}Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\n{"n":1}`),
    state: 'done',
  },
  'an error with codings, cut off': {
    answer: (socket) => socket.end(SIX_GZIPS.replace('200 OK', '500 No')),
    state: 'scheduled',
    message: /^the webhook answered 500$/,
  },
  '410, cut off': { answer: (socket) => socket.end('HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\na'), state: 'dead' },
  '200, cut off': { answer: (socket) => socket.end(`${OK}Content-Length: 9\r\n\r\n{`), state: 'done' },
  'a body without a length': { answer: (socket) => socket.end(`${OK}\r\n{"n":1}`), state: 'done', result: { n: 1 } },
  'a body that does not end': { answer: (socket) => endlessly(socket, `${OK}\r\n`, '[1],'), state: 'done' },
  'chunks that do not end': {
    answer: (socket) => endlessly(socket, `${OK}Transfer-Encoding: chunked\r\n\r\n`, '3\r\n[1]\r\n'),
    state: 'done',
  },
  'a body that does not come': {
    answer: (socket) => socket.write(`${OK}Content-Length: 9\r\n\r\n`),
    state: 'done',
    late: true,
  },
  trailers: {
    answer: (socket) =>
      socket.write(`${OK}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n7\r\n{"n":1}\r\n0\r\nX: y\r\n\r\n`),
    state: 'done',
    result: { n: 1 },
  },
  '100 and 103 before the answer': {
    answer: (socket) =>
      socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${JSON_1}`),
    state: 'done',
    result: { n: 1 },
  },
  '100 without end': {
    answer: (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 5)
      socket.on('close', () => clearInterval(timer))
    },
    state: 'scheduled',
    message: /did not answer within/,
    late: true,
  },
  '101': {
    answer: (socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nabc'),
    state: 'scheduled',
    message: /^the webhook (?:answered 101|could not be reached\b.*)$/,
  },
  'headers that do not end': {
    answer: (socket) => endlessly(socket, 'HTTP/1.1 200 OK\r\n', `X: ${'y'.repeat(100)}\r\n`),
    state: 'scheduled',
    message: /^the webhook could not be reached/,
  },
  'one header that does not end': {
    answer: (socket) => endlessly(socket, 'HTTP/1.1 200 OK\r\nX: ', 'y'.repeat(100)),
    state: 'scheduled',
    message: /^the webhook could not be reached/,
  },
  'half a head': { answer: (socket) => socket.end('HTTP/1.1 200 OK\r\nCont'), state: 'scheduled' },
  'a head that stops': {
    answer: (socket) => socket.write('HTTP/1.1 200 OK\r\nCont'),
    state: 'scheduled',
    message: /did not answer within/,
    late: true,
  },
  'no HTTP': { answer: (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), state: 'scheduled' },
  nothing: { answer: (socket) => socket.end(), state: 'scheduled' },
  'a reset': { answer: (socket) => socket.resetAndDestroy(), state: 'scheduled' },
  'two answers': { answer: (socket) => socket.write(JSON_1 + JSON_1), state: 'done', result: { n: 1 } },
  'a redirect with a body that is cut off': {
    answer: (socket) => socket.end('HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 5\r\n\r\na'),
    state: 'scheduled',
    message: /^the webhook answered 307$/,
  },
}

serveTest('each kind of broken answer has one outcome', async ({ open }) => {
  const errors: string[] = []
  const uncaught = (error: Error) => errors.push(String(error))
  process.on('uncaughtExceptionMonitor', uncaught)
  const receivers = new Map<string, Awaited<ReturnType<typeof rawReceiver>>>()
  try {
    for (const [kind, { answer }] of Object.entries(KINDS)) receivers.set(kind, await rawReceiver(answer))
    const queueOf = (kind: string) => kind.replaceAll(/\W/g, '-')
    const deliveries = Object.entries(KINDS).map(([kind, { late }]) =>
      delivery(receivers.get(kind)?.origin ?? '', { queue: queueOf(kind), timeout: late ? 4000 : 8000 }),
    )
    const client = await open({ deliveries })
    const ids = new Map<string, string>()
    for (const kind of Object.keys(KINDS)) ids.set(kind, await client.push(queueOf(kind), 1))
    // Of all at once: those that failed are tried again a second later.
    const jobs = new Map(
      await Promise.all([...ids].map(async ([kind, id]) => [kind, await outcome(client, id)] as const)),
    )
    for (const [kind, { state, result, message }] of Object.entries(KINDS)) {
      const job = jobs.get(kind) ?? {}
      assert.deepEqual([job.state, job.attempt, job.result], [state, 1, result], `${kind}: ${messageOf(job)}`)
      if (message !== undefined) assert.match(messageOf(job), message, kind)
    }
    assert.deepEqual(errors, [])
  } finally {
    process.off('uncaughtExceptionMonitor', uncaught)
    await Promise.all([...receivers.values()].map((receiver) => receiver.close()))
  }
})

serveTest('an answer before the whole request was sent counts', async ({ open }) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  try {
    assert.ok(typeof address === 'object' && address !== null)
    const client = await open({
      deliveries: [delivery(`http://127.0.0.1:${address.port}`)],
      maxPayload: 16 * 1024 * 1024,
      maxBody: 20 * 1024 * 1024,
    })
    // More than the buffers between the two hold.
    const id = await client.push('hooks', 'x'.repeat(15 * 1024 * 1024))
    assert.equal((await outcome(client, id)).state, 'dead')
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
})

serveTest('TLS that fails, and TLS that does not answer, are failed attempts', async ({ open }) => {
  const plain = await rawReceiver((socket) => socket.end(JSON_1))
  const sockets = new Set<Socket>()
  // A greeting of TLS is no request, and `rawReceiver` waits for one: it is the mute one.
  const confused = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
  }).listen(0, '127.0.0.1')
  await once(confused, 'listening')
  const address = confused.address()
  try {
    assert.ok(typeof address === 'object' && address !== null)
    const client = await open({
      deliveries: [
        delivery(plain.origin.replace('http:', 'https:'), { queue: 'mute', timeout: 150 }),
        delivery(`https://127.0.0.1:${address.port}`, { queue: 'confused' }),
      ],
    })
    const mute = await outcome(client, await client.push('mute', 1))
    const failed = await outcome(client, await client.push('confused', 1))
    assert.deepEqual([mute.state, failed.state], ['scheduled', 'scheduled'])
    assert.match(messageOf(mute), /did not answer within 150 ms/)
    assert.match(messageOf(failed), /could not be reached/)
  } finally {
    for (const socket of sockets) socket.destroy()
    confused.close()
    await plain.close()
  }
})

serveTest('a connection is kept, and one that the receiver has closed costs no attempt', async ({ open }) => {
  const kept = await rawReceiver((socket) => socket.write(JSON_1))
  const fickle = await rawReceiver((socket, _, before) => {
    if (before === 0) socket.write(JSON_1)
    else socket.destroy()
  })
  try {
    const client = await open({
      deliveries: [delivery(kept.origin, { queue: 'kept' }), delivery(fickle.origin, { queue: 'fickle' })],
    })
    for (let n = 0; n < 5; n++) {
      for (const queue of ['kept', 'fickle']) {
        const job = await outcome(client, await client.push(queue, n))
        assert.deepEqual([job.state, job.attempt, job.result], ['done', 1, { n: 1 }], queue)
      }
    }
    assert.ok(kept.connections < 5, `${kept.connections} connections for 5 requests`)
  } finally {
    await kept.close()
    await fickle.close()
  }
})

serveTest('a receiver at an IPv6 address', async ({ open }) => {
  const receiver = await rawReceiver((socket) => socket.write(JSON_1), '::1')
  try {
    const client = await open({ deliveries: [delivery(receiver.origin)] })
    assert.equal((await outcome(client, await client.push('hooks', 1))).state, 'done')
  } finally {
    await receiver.close()
  }
})

serveTest(
  'a result has no keys that reach a prototype, and no more levels than a request may have',
  async ({ open }) => {
    const bodies = [
      '{"__proto__":{"admin":true}}',
      '{"a":[{"__proto__":1}]}',
      '{"constructor":{"prototype":{"admin":true}}}',
      `${'['.repeat(101)}${']'.repeat(101)}`,
    ]
    const receiver = await rawReceiver((socket, request) => {
      const { data } = JSON.parse(request.slice(request.indexOf('\r\n\r\n')))
      const body = bodies[data] ?? '{"constructor":"fine"}'
      socket.write(`${OK}Content-Length: ${body.length}\r\n\r\n${body}`)
    })
    try {
      const client = await open({ deliveries: [delivery(receiver.origin)] })
      for (const index of bodies.keys()) {
        const job = await outcome(client, await client.push('hooks', index))
        assert.deepEqual([job.state, Object.hasOwn(job, 'result')], ['done', false], bodies[index])
      }
      const fine = await outcome(client, await client.push('hooks', bodies.length))
      assert.deepEqual(fine.result, { constructor: 'fine' })
    } finally {
      await receiver.close()
    }
  },
)

serveTest('a delivery goes to http: or https:, without a user and password, which no error shows', async ({ open }) => {
  for (const url of ['ftp://example.org/', 'http://ada:hunter22@127.0.0.1/', 'https://ada@127.0.0.1/']) {
    await assert.rejects(open({ deliveries: [delivery(url)] }), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'InvalidOption')
      assert.doesNotMatch(`${error.message} ${error.stack}`, /hunter22|ada/)
      return true
    })
  }
})
