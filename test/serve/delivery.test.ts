/** Queues delivered to a real receiver, which verifies the signature as the specification has it and sometimes fails. */
import assert from 'node:assert/strict'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { type Delivery, delayOf } from '../../src/serve/delivery.ts'
import { signatureHeaders, signingKey } from '../../src/serve/signature.ts'
import { until } from '../api/suite.ts'
import { listening } from '../web/serving.ts'
import { type Client, serveTest } from './client.ts'

interface Received {
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
  text: string
}
type Reply = { status: number; headers?: Record<string, string>; body?: string } | 'hang'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const OLD_SECRET = `whsec_${randomBytes(24).toString('base64')}`

/** As a receiver would, with nothing of ours. */
function isGenuine({ headers, text }: Received, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signatures } = headers
  if (Math.abs(Date.now() / 1000 - Number(seconds)) > 300) return false
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const expected = Buffer.from(createHmac('sha256', key).update(`${id}.${seconds}.${text}`).digest('base64'))
  return String(signatures)
    .split(' ')
    .map((signature) => Buffer.from(signature.replace(/^v1,/, '')))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected))
}

async function receiver(reply: (received: Received, count: number) => Reply) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const one = { headers: request.headers, text, body: JSON.parse(text) }
    received.push(one)
    const answer = reply(one, received.length)
    if (answer === 'hang') return
    response.writeHead(answer.status, answer.headers)
    response.end(answer.body)
  })
  const origin = await listening(server)
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { received, origin, close }
}

function delivery(origin: string, more: Partial<Delivery> = {}): Delivery {
  const keys = [signingKey(SECRET) ?? Buffer.alloc(0)]
  return { queue: 'hooks', url: new URL('/in?x=1', origin), keys, concurrency: 3, timeout: 10_000, ...more }
}

async function inState(client: Client, id: string, state: string): Promise<Record<string, unknown>> {
  let body: Record<string, unknown> = {}
  await until(
    async () => {
      body = (await client.get(`/v1/jobs/${id}`)).body
      return body.state === state
    },
    `job to be ${state}, is ${String(body.state)}`,
  )
  return body
}

serveTest('each job is posted once, signed; a JSON answer is its result', async ({ open }) => {
  const { received, origin, close } = await receiver(() => ({
    status: 201,
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '{"ok":1}',
  }))
  try {
    const client = await open({ deliveries: [delivery(origin)] })
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const { body } = await client.post('/v1/queues/hooks/jobs', { data: { to: 'ada' } }, { traceparent: trace })
    const id = String(body.id)
    const job = await inState(client, id, 'done')
    assert.deepEqual(job.result, { ok: 1 })
    const [one] = received
    assert.ok(one && received.length === 1)
    assert.ok(
      isGenuine(one, SECRET) && !isGenuine(one, OLD_SECRET) && !isGenuine({ ...one, text: `${one.text} ` }, SECRET),
    )
    assert.equal(one.headers['webhook-id'], id)
    assert.equal(one.headers.traceparent, trace)
    assert.deepEqual(one.body, {
      ...{ type: 'hooks', timestamp: job.pushedAt, data: { to: 'ada' } },
      ...{ id, attempt: 1, attempts: 10 },
    })
  } finally {
    await close()
  }
})

serveTest('429 and 503 come back after Retry-After; the id stays, the signature is new', async ({ open }) => {
  const { received, origin, close } = await receiver((_, count) =>
    count < 3 ? { status: count === 1 ? 429 : 503, headers: { 'retry-after': '0' } } : { status: 204 },
  )
  try {
    const failures: string[] = []
    const onFailure: Delivery['onFailure'] = (_, message) => failures.push(message)
    const client = await open({ deliveries: [delivery(origin, { onFailure })] })
    const id = await client.push('hooks', 1)
    const job = await inState(client, id, 'done')
    assert.deepEqual([job.attempt, job.result], [3, undefined])
    assert.deepEqual(failures, ['the webhook answered 429', 'the webhook answered 503'])
    assert.ok(received.every((one) => one.headers['webhook-id'] === id && isGenuine(one, SECRET)))
    assert.deepEqual(
      received.map(({ body }) => body.attempt),
      [1, 2, 3],
    )
  } finally {
    await close()
  }
})

serveTest(
  '410 gives the job up; errors, redirects, silence and no receiver wait for another attempt',
  async ({ open }) => {
    const replies: Record<string, Reply> = {
      gone: { status: 410 },
      error: { status: 500 },
      moved: { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
      mute: 'hang',
    }
    const { received, origin, close } = await receiver(({ body }) => replies[String(body.type)] ?? { status: 200 })
    const nobody = await receiver(() => 'hang')
    await nobody.close()
    try {
      const queues = [...Object.keys(replies), 'nobody']
      const deliveries = queues.map((queue) => {
        const to = queue === 'nobody' ? nobody.origin : origin
        return delivery(to, { queue, timeout: queue === 'mute' ? 50 : 10_000 })
      })
      const client = await open({ deliveries })
      const ids = new Map<string, string>()
      for (const queue of queues) ids.set(queue, await client.push(queue, 1))
      const expected: [string, string, string, RegExp][] = [
        ['gone', 'dead', 'GaveUp', /^the webhook answered 410$/],
        ['error', 'scheduled', 'HandlerFailed', /^the webhook answered 500$/],
        ['moved', 'scheduled', 'HandlerFailed', /^the webhook answered 302$/],
        ['mute', 'scheduled', 'HandlerFailed', /^the webhook did not answer within 50 ms$/],
        ['nobody', 'scheduled', 'HandlerFailed', /^the webhook could not be reached: ECONNREFUSED$/],
      ]
      for (const [queue, state, code, message] of expected) {
        const { error, dueAt, startedAt } = await inState(client, ids.get(queue) ?? '', state)
        assert.ok(typeof error === 'object' && error !== null && 'code' in error && 'message' in error)
        assert.equal(error.code, code)
        assert.match(String(error.message), message)
        // 5 s, at least half of them.
        if (state === 'scheduled') assert.ok(Date.parse(String(dueAt)) - Date.parse(String(startedAt)) >= 2500, queue)
      }
      assert.equal(received.length, 4)
    } finally {
      await close()
    }
  },
)

serveTest(
  'while a secret is changed both are signed with; closing gives back what is under way',
  async ({ open, url }) => {
    assert.equal(url, 'memory:')
    const { received, origin, close } = await receiver(() => 'hang')
    try {
      const keys = [SECRET, OLD_SECRET].map((secret) => signingKey(secret) ?? Buffer.alloc(0))
      const client = await open({ deliveries: [delivery(origin, { keys })] })
      await client.push('hooks', 1)
      await until(() => received.length === 1)
      const [one] = received
      assert.ok(one && isGenuine(one, SECRET) && isGenuine(one, OLD_SECRET))
      await client.served.close({ timeout: 10 })
    } finally {
      await close()
    }
  },
)

test('the signature of the specification, and secrets that are none', () => {
  // The example of the reference libraries.
  const key = signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
  assert.ok(key)
  const headers = signatureHeaders([key], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}')
  assert.deepEqual(headers, {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
  const short = randomBytes(23).toString('base64')
  const long = randomBytes(65).toString('base64')
  for (const bad of ['', 'whsec_', `whsec_${short}`, `whsec_${long}`, SECRET.slice(6), `${SECRET} `, 'whsec_äöü']) {
    assert.equal(signingKey(bad), undefined, bad)
  }
})

test('Retry-After: seconds, dates, a day at the most', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  assert.equal(delayOf('120', now), 120_000)
  assert.equal(delayOf('Thu, 01 Jan 2026 00:01:00 GMT', now), 60_000)
  assert.equal(delayOf('Wed, 31 Dec 2025 00:00:00 GMT', now), 0)
  assert.equal(delayOf('999999999', now), 86_400_000)
  for (const bad of ['', 'soon', '1.5.x']) assert.equal(delayOf(bad, now), undefined, bad)
})
