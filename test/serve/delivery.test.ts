/** Queues delivered to a real receiver, which verifies the signature as the specification has it and sometimes fails. */
import assert from 'node:assert/strict'
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import { openStore } from '../../src/stores/open.ts'
import { type Delivery, deliver } from '../../src/webhook/delivery.ts'
import { retryAfter } from '../../src/webhook/retry-after.ts'
import { signatureHeaders, signingKey } from '../../src/webhook/signature.ts'
import { meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'
import { listening } from '../web/serving.ts'
import { type Client, serveTest } from './client.ts'

interface Received {
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
  text: string
}
/** `broken`: the connection is cut after the head and a part of the body. */
type Reply = { status: number; headers?: Record<string, string>; body?: string; broken?: true } | 'hang'

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
    try {
      for await (const chunk of request) text += chunk
    } catch {
      // The sender's time was over before all of it had come.
      return
    }
    const one = { headers: request.headers, text, body: JSON.parse(text) }
    received.push(one)
    const answer = reply(one, received.length)
    if (answer === 'hang') return
    response.writeHead(answer.status, answer.headers)
    if (answer.broken) response.write('{', () => request.socket.destroy())
    else response.end(answer.body)
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

serveTest(
  '429 and 503 come back after Retry-After, 429 uncounted; the id stays, the signature is new',
  async ({ open }) => {
    const { received, origin, close } = await receiver((_, count) =>
      count < 3 ? { status: count === 1 ? 429 : 503, headers: { 'retry-after': '1' } } : { status: 204 },
    )
    try {
      const failures: string[] = []
      const onFailure: Delivery['onFailure'] = (_, message) => failures.push(message)
      const client = await open({ deliveries: [delivery(origin, { onFailure })] })
      const id = await client.push('hooks', 1)
      const job = await inState(client, id, 'done')
      assert.deepEqual([job.attempt, job.result], [2, undefined])
      assert.deepEqual(failures, [
        'the webhook answered 429 and asked for a pause; it counts as no attempt',
        'the webhook answered 503',
      ])
      assert.ok(received.every((one) => one.headers['webhook-id'] === id && isGenuine(one, SECRET)))
      assert.deepEqual(
        received.map(({ body }) => body.attempt),
        [1, 1, 2],
      )
    } finally {
      await close()
    }
  },
)

for (const limits of [true, false]) {
  const title = limits ? 'a 429 with Retry-After pauses the queue' : 'without limits it is an attempt, and others go on'
  test(title, { timeout: 60_000 }, async () => {
    const { received, origin, close } = await receiver((_, count) =>
      count === 1 ? { status: 429, headers: { 'retry-after': '1' } } : { status: 204 },
    )
    const store = meddled(await openStore('memory:', {}), {}, { rates: limits })
    const pond = new Millpond(store, 1000)
    const messages: string[] = []
    const onFailure: Delivery['onFailure'] = (_, message) => messages.push(message)
    const { disconnect: stop } = deliver(pond, delivery(origin, { concurrency: 1, onFailure }), 1000)
    try {
      await pond.queue('hooks').pushMany(['a', 'b'])
      await until(() => received.length === 3)
      assert.deepEqual(
        received.map(({ body }) => `${body.data}${body.attempt}`),
        limits ? ['a1', 'a1', 'b1'] : ['a1', 'b1', 'a2'],
      )
      assert.match(
        String(messages),
        limits ? / and asked for a pause; it counts as no attempt$/ : /^the webhook answered 429$/,
      )
    } finally {
      await pond.close()
      stop()
      await close()
    }
  })
}

serveTest('a 429 without Retry-After is a failed attempt', async ({ open }) => {
  const { origin, close } = await receiver(() => ({ status: 429 }))
  try {
    const client = await open({ deliveries: [delivery(origin)] })
    const { attempt } = await inState(client, await client.push('hooks', 1), 'scheduled')
    assert.equal(attempt, 1)
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
        [
          'nobody',
          'scheduled',
          'HandlerFailed',
          /^the webhook could not be reached: (?:ECONNREFUSED|Connection ?[Rr]efused\b[^/]*)$/,
        ],
      ]
      for (const [queue, state, code, message] of expected) {
        const { error, dueAt, startedAt } = await inState(client, ids.get(queue) ?? '', state)
        assert.ok(typeof error === 'object' && error !== null && 'code' in error && 'message' in error)
        assert.equal(error.code, code)
        assert.match(String(error.message), message)
        // 5 s, at least half of them.
        if (state === 'scheduled') assert.ok(Date.parse(String(dueAt)) - Date.parse(String(startedAt)) >= 2500, queue)
      }
      // Each once; the mute one's time may be over before it has heard of anything.
      const types = received.map(({ body }) => String(body.type)).filter((type) => type !== 'mute')
      assert.deepEqual(types.sort(), ['error', 'gone', 'moved'])
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
      const failures: string[] = []
      const onFailure: Delivery['onFailure'] = (_, message) => failures.push(message)
      const client = await open({ deliveries: [delivery(origin, { keys, onFailure })] })
      await client.push('hooks', 1)
      await until(() => received.length === 1)
      const [one] = received
      assert.ok(one && isGenuine(one, SECRET) && isGenuine(one, OLD_SECRET))
      await client.served.close({ timeout: 10 })
      await until(() => failures.length === 1)
      assert.deepEqual(failures, ['the attempt was over before the webhook answered: Closed'])
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

serveTest('a Retry-After that names no time ahead does not burn the attempts', async ({ open }) => {
  const values = ['0', '-1', '0.5', '1.5', '2,5', 'soon', 'Sun, 06 Nov 1994 08:49:37 GMT']
  const { received, origin, close } = await receiver(({ body }) => {
    const value = values[Number(body.data)] ?? ''
    return { status: 503, headers: { 'retry-after': value } }
  })
  try {
    const client = await open({ deliveries: [delivery(origin)] })
    for (const [index, value] of values.entries()) {
      const { attempt, dueAt, startedAt } = await inState(client, await client.push('hooks', index), 'scheduled')
      assert.equal(attempt, 1)
      // As without it: 5 s, at least half of them.
      assert.ok(Date.parse(String(dueAt)) - Date.parse(String(startedAt)) >= 2500, value)
    }
    assert.equal(received.length, values.length)
  } finally {
    await close()
  }
})

serveTest('2xx is done, whatever comes with it: answers that cannot be stored, broken ones', async ({ open }) => {
  const json = { 'content-type': 'application/json' }
  const replies: Record<string, Reply> = {
    deep: { status: 200, headers: json, body: `${'['.repeat(1000)}${']'.repeat(1000)}` },
    large: { status: 200, headers: json, body: JSON.stringify('x'.repeat(2000)) },
    nonsense: { status: 200, headers: json, body: '{' },
    cut: { status: 200, headers: json, broken: true },
    cutText: { status: 200, headers: { 'content-type': 'text/plain' }, broken: true },
  }
  const { received, origin, close } = await receiver(({ body }) => replies[String(body.type)] ?? { status: 500 })
  try {
    const deliveries = Object.keys(replies).map((queue) => delivery(origin, { queue }))
    const client = await open({ deliveries, maxPayload: 1000 })
    for (const queue of Object.keys(replies)) {
      const { attempt, result } = await inState(client, await client.push(queue, 1), 'done')
      assert.deepEqual([attempt, result], [1, undefined], queue)
    }
    assert.equal(received.length, Object.keys(replies).length)
  } finally {
    await close()
  }
})

test('Retry-After: whole seconds, dates of three forms, a second at least and a day at the most', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const asked: [string, number][] = [
    ['1', 1000],
    [' 120 ', 120_000],
    ['99999999999999999999', 86_400_000],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
    ['Thu Jan  1 00:01:00 2026', 60_000],
    ['Sun, 01 Feb 2026 00:00:00 GMT', 86_400_000],
    ['Wednesday, 01-Jan-76 00:00:00 GMT', 86_400_000],
  ]
  for (const [value, ms] of asked) assert.equal(retryAfter(value, now), ms, value)
  assert.equal(retryAfter('Thu, 01 Jan 2026 00:00:01 GMT', now + 999), 1000)
  const past = ['Wed, 31 Dec 2025 23:59:59 GMT', 'Thu, 01 Jan 2026 00:00:00 GMT', 'Friday, 01-Jan-77 00:00:00 GMT']
  const neither = ['', 'soon', '1.5', '0.5', '-1', '+1', '2,5', '1e3', '2027-01-01T00:00:00Z']
  const almost = ['Fri, 01 Jan 2027 00:00:00', 'Fri, 1 Jan 2027 00:00:00 GMT', 'Fri, 01 Jan 2027 25:00:00 GMT']
  for (const none of ['0', '000', ...past, ...neither, ...almost]) assert.equal(retryAfter(none, now), undefined, none)
})
