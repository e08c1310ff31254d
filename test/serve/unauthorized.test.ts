/** Requests without a right token: told of, and slowed down, without a harm to those who have it. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { serve } from '../../src/serve/index.ts'
import { delayAfter, type UnauthorizedClient, UnauthorizedClients } from '../../src/serve/unauthorized.ts'
import { setClient } from '../../src/web/permits.ts'
import { until } from '../support/until.ts'
import { serveTest } from './client.ts'

const TOKEN = 'correct-horse-battery'

/** @returns its status, when it is there */
function ask(
  origin: string,
  token: string | undefined,
  localAddress = '127.0.0.1',
  path = '/v1/queues',
): Promise<number> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const asking = request(`${origin}${path}`, { localAddress, headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asking.on('error', reject)
    asking.end()
  })
}

serveTest('each 401 is told with its address and how many there were, without the token', async ({ open, listen }) => {
  const told: UnauthorizedClient[] = []
  const client = await open({ tokens: [TOKEN], onUnauthorized: (stranger) => told.push(stranger) })
  const { origin } = await listen(client)
  assert.equal(await ask(origin, 'wrong-but-long-enough'), 401)
  assert.equal(await ask(origin, undefined), 401)
  assert.equal(await ask(origin, 'wrong-but-long-enough', '127.0.0.2'), 401)
  assert.equal(await ask(origin, TOKEN), 200)
  assert.equal(await ask(origin, undefined, '127.0.0.1', '/healthz'), 200)
  assert.deepEqual(told, [
    { address: '127.0.0.1', times: 1 },
    { address: '127.0.0.1', times: 2 },
    { address: '127.0.0.2', times: 1 },
  ])
})

serveTest(
  'after some of them the next waits; who has the token waits for nothing, nor does another address',
  async ({ open, listen }) => {
    const told: UnauthorizedClient[] = []
    const client = await open({ tokens: [TOKEN], onUnauthorized: (stranger) => told.push(stranger) })
    const { origin } = await listen(client)
    // So many that the next one waits for the longest time.
    while (delayAfter(told.length) < delayAfter(1000)) {
      const asked = told.length
      void ask(origin, 'wrong-but-long-enough').catch(() => {})
      await until(() => told.length > asked)
    }
    let answered = false
    const slow = ask(origin, 'wrong-but-long-enough').then((status) => {
      answered = true
      return status
    })
    const count = told.length
    await until(() => told.length > count)
    const others = [ask(origin, TOKEN), ask(origin, TOKEN), ask(origin, 'wrong-but-long-enough', '127.0.0.2')]
    assert.deepEqual(await Promise.all(others), [200, 200, 401])
    assert.equal(answered, false)
    assert.equal(await slow, 401)
  },
)

test('delayed answers hold a quarter of the connections; further ones come at once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const service = await serve('memory:', { tokens: [TOKEN], maxConnections: 8 })
  let answered = 0
  const ask = () => {
    const request = new Request('http://localhost/v1/queues')
    setClient(request, '192.0.2.1')
    void service.handle(request).then(() => answered++)
  }
  for (let times = 0; times < 5 + 8; times++) ask()
  for (let tick = 0; tick < 100; tick++) await undefined
  assert.equal(answered, 5 + 6)
  service.stop()
  t.mock.timers.reset()
  await until(() => answered === 5 + 8)
  await service.close()
})

test('a stop, hanging up, and the time end the wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const never = new AbortController().signal
  const refusal = async (end: (stop: () => void, hangUp: () => void) => void) => {
    const [stopping, hangUp] = [new AbortController(), new AbortController()]
    const strangers = new UnauthorizedClients(10, stopping.signal, () => {})
    for (let times = 0; times < 5; times++) await strangers.refusal('a', never)
    const waiting = strangers.refusal('a', hangUp.signal)
    let over = false
    void waiting.then(() => {
      over = true
    })
    for (let tick = 0; tick < 20; tick++) await undefined
    assert.equal(over, false)
    end(
      () => stopping.abort(),
      () => hangUp.abort(),
    )
    assert.equal((await waiting).problem.status, 401)
  }
  await refusal((stop) => stop())
  await refusal((_, hangUp) => hangUp())
  await refusal(() => t.mock.timers.tick(delayAfter(6)))
})

serveTest('a hook that throws changes no answer', async ({ open }) => {
  const errors: unknown[] = []
  const client = await open({
    tokens: [TOKEN],
    onError: (error) => errors.push(error),
    onUnauthorized: () => {
      throw new Error('broken')
    },
  })
  assert.equal((await client.raw('GET', '/v1/queues', { headers: { authorization: '' } })).status, 401)
  assert.deepEqual(errors.map(String), ['Error: broken'])
})

test('the delay hangs on the number alone, and is bounded', async () => {
  const delays = Array.from({ length: 2000 }, (_, index) => delayAfter(index + 1))
  assert.deepEqual(delays.slice(0, 6), [0, 0, 0, 0, 0, 100])
  assert.ok(delays.every((delay, index) => delay <= 2000 && delay >= (delays[index - 1] ?? 0)))
})

test('a thousand addresses are remembered; others take the place of those longest silent', async () => {
  const told: UnauthorizedClient[] = []
  const over = AbortSignal.abort()
  const strangers = new UnauthorizedClients(10, over, (stranger) => told.push(stranger))
  const last = async (address: string) => {
    await strangers.refusal(address, over)
    return told.at(-1)?.times
  }
  for (let times = 1; times <= 3; times++) assert.equal(await last('a'), times)
  for (let other = 0; other < 999; other++) await last(`b${other}`)
  assert.equal(await last('a'), 4)
  for (let other = 0; other < 1000; other++) await last(`c${other}`)
  assert.equal(await last('a'), 1)
})
