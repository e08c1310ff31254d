/**
 * Thousands of hostile requests: no 5xx but 503, no crash, memory bounded, nothing stored that validation refuses.
 * `MILLPOND_HOSTILE_SEED` makes others.
 */

import assert from 'node:assert/strict'
import { listedJob } from '../../src/serve/api-schemas.ts'
import { check } from '../../src/serve/json-schema.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { exchange } from '../web/serving.ts'
import { type Client, onStores, serveTest } from './client.ts'
import { ATTACKS, type Attack, attack, SECRET } from './hostile-connections.ts'
import { Dice, type Hostile, hostile } from './hostile-requests.ts'

const REQUESTS = depth(1000, 10_000)
const SEED = Number(process.env.MILLPOND_HOSTILE_SEED ?? 20_261_121)
const PAYLOAD = 'what only its own path leads to'
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
/** Those that a Request cannot be made of. */
const IMPOSSIBLE = Symbol('impossible')

function requestOf({ method, path, headers, body }: Hostile): Request | typeof IMPOSSIBLE {
  try {
    return new Request(`http://localhost${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
  } catch {
    return IMPOSSIBLE
  }
}

/** Asserts that the answer is one that a client may get. @returns the ids of jobs that it tells to be stored */
async function sane(response: Response, asked: Hostile): Promise<string[]> {
  const about = `${asked.method} ${asked.path.slice(0, 200)} ${JSON.stringify(asked.headers).slice(0, 300)} ${response.status}`
  assert.ok(response.status < 500 || response.status === 503, about)
  const type = response.headers.get('content-type')
  if (type === 'text/event-stream') {
    await response.body?.cancel()
    return []
  }
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status >= 400 && asked.method !== 'HEAD') {
    assert.equal(type, 'application/problem+json', about)
    const document = JSON.parse(bytes.toString('utf8'))
    assert.equal(document.status, response.status, about)
    assert.doesNotMatch(document.detail, /\bat .+:\d+|\/src\/|node:internal/, about)
    assert.ok(bytes.length < 200_000, about)
    if (response.status === 405) assert.ok(response.headers.get('allow'), about)
    if (response.status === 503) assert.ok(response.headers.get('retry-after'), about)
  }
  if (response.status !== 202 || type !== 'application/json') return []
  const { id, jobs } = JSON.parse(bytes.toString('utf8'))
  return Array.isArray(jobs) ? jobs.map((job) => job.id) : [id]
}

async function barrage(client: Client, requests: number, seed: number): Promise<Map<number, number>> {
  const dice = new Dice(seed)
  const ids: string[] = []
  const statuses = new Map<number, number>()
  const before = process.memoryUsage().rss
  for (let sent = 0; sent < requests; ) {
    // Several at once, as they would come.
    const asked = Array.from({ length: 20 }, () => hostile(dice, ids))
    const stored = await Promise.all(
      asked.map(async (one) => {
        const request = requestOf(one)
        if (request === IMPOSSIBLE) return []
        const response = await client.served.handle(request)
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
        return sane(response, one)
      }),
    )
    ids.push(...stored.flat())
    if (ids.length > 500) ids.splice(0, 250)
    sent += asked.length
  }
  const grown = process.memoryUsage().rss - before
  assert.ok(grown < 400_000_000, `${grown} bytes more`)
  return statuses
}

onStores(
  'hostile requests',
  {
    'no 5xx but 503, and nothing stored that validation refuses': async ({ open, url }) => {
      const client = await open({ longPoll: 5, maxBody: 200_000 })
      const statuses = await barrage(client, url === 'memory:' ? REQUESTS : Math.ceil(REQUESTS / 5), SEED)
      // It must have got through to everything that there is.
      for (const status of [200, 202, 400, 404, 405, 406, 409, 413, 415, 422, 403]) {
        assert.ok((statuses.get(status) ?? 0) > 0, `never ${status}: ${JSON.stringify([...statuses])}`)
      }
      assert.equal(Object.hasOwn(Object.prototype, 'x'), false)
      const { body } = await client.get('/v1/queues')
      assert.ok(Array.isArray(body.queues))
      for (const { queue } of body.queues) {
        assert.match(queue, /^[A-Za-z0-9][A-Za-z0-9_\-.:/]{0,127}$/)
        for (const state of ['waiting', 'scheduled', 'running', 'done', 'dead', 'cancelled']) {
          const page = await client.get(`/v1/queues/${encodeURIComponent(queue)}/jobs?state=${state}&limit=100`)
          assert.ok(page.status === 200 && Array.isArray(page.body.jobs))
          for (const job of page.body.jobs) {
            assert.deepEqual(check(job, listedJob), [], JSON.stringify(job))
            assert.ok(job.priority >= 0 && job.priority <= 9 && job.attempts >= 1)
          }
        }
      }
    },
  },
  60_000 + REQUESTS * 5,
)

serveTest(
  'connections that are broken, half-open, slow to read, pipelined, or ask by odd paths: the server ends each and goes on',
  async ({ open, listen }) => {
    const client = await open({ longPoll: 5 })
    await client.push('secret', PAYLOAD)
    for (let job = 0; job < 4; job++) await client.push('big', 'x'.repeat(1_000_000))
    const times = {
      headersTimeout: 300,
      requestTimeout: 600,
      keepAliveTimeout: 50,
      connectionsCheckingInterval: 50,
      stall: 100,
      linger: 50,
    }
    const { origin } = await listen(client, { ...times, maxConnections: 46 })
    const dice = new Dice(SEED + 1)
    const before = process.memoryUsage().rss
    let most = before
    const held: Attack[] = []
    for (let sent = 0; sent < REQUESTS; ) {
      const attacks = Array.from({ length: 42 }, (_, index) => {
        return attack(ATTACKS[index % ATTACKS.length] ?? 'half-open', dice, origin)
      })
      const slow = attacks.filter(({ kind }) => kind === 'slow readers')
      for (const { kind, over } of attacks.filter((one) => !slow.includes(one))) answeredSanely(kind, await over)
      most = Math.max(most, process.memoryUsage().rss)
      for (const { readOn } of slow) readOn()
      for (const { kind, over } of slow) answeredSanely(kind, await over)
      sent += attacks.reduce((sum, { requests }) => sum + requests, 0)
      held.push(...attacks)
      for (const { leave } of held.splice(0, held.length - 300)) leave()
      await until(async () => (await fetch(`${origin}/healthz`).catch(() => undefined))?.ok === true, 'health')
    }
    // None is held by clients that stay: but for the two that fetch may hold, all connections can be had at once.
    await until(async () => {
      const heard = await Promise.all(
        Array.from({ length: 44 }, () => exchange(origin, HEALTH, '200 OK').catch(String)),
      )
      return heard.every((one) => one.includes('200 OK'))
    }, 'all connections')
    for (const { leave } of held) leave()
    assert.ok(most - before < 400_000_000, `${most - before} bytes more`)
    assert.match(await (await fetch(origin + SECRET)).text(), new RegExp(PAYLOAD))
    assert.equal(Object((await client.get('/v1/queues/secret')).body.counts).waiting, 1)
  },
  60_000 + REQUESTS * 10,
)

function answeredSanely(kind: string, heard: string): void {
  for (const [, status] of heard.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
    assert.ok(Number(status) < 500 || Number(status) === 503, `${kind}: ${heard.slice(0, 500)}`)
  }
  assert.ok(!heard.includes(PAYLOAD), `${kind}: ${heard.slice(0, 500)}`)
}

serveTest('the payload that came is the payload that is stored, whatever it holds', async ({ open }) => {
  const client = await open()
  const odd = ['\0', '🦆', '</script>', "'; drop table jobs", { '': 1, toString: 2 }, [[]], 1e308, -0.5, 2 ** 53 - 1]
  for (const data of odd) {
    const id = await client.push('odd', data)
    const [job] = await client.claim('odd')
    assert.deepEqual([job?.id, job?.data], [id, data])
  }
})
