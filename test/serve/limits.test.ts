/** Limits, groups and turns over HTTP: set, shown and heeded; and refused where the store has none. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unpack } from 'msgpackr'
import { Millpond } from '../../src/pond/millpond.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { Service } from '../../src/serve/service.ts'
import type { Store } from '../../src/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { newId } from '../../src/values/jobs/ids.ts'
import type { NewJob } from '../../src/values/jobs/records.ts'
import { meddled } from '../support/meddled.ts'
import { answered, type Client, isProblem, serveTest } from './client.ts'

const NONE = { running: null, rate: null }
const FREE = { nextStart: 0, groupsAtLimit: 0, groupsHeld: 0 }
const MINUTE = 60_000

const change = (client: Client, queue: string, body: unknown) => client.ask('PATCH', `/v1/queues/${queue}`, body)
const changeGroup = (client: Client, body: unknown) => client.ask('PATCH', '/v1/queues/q/groups', body)

async function explained(client: Client, id: string): Promise<Record<string, unknown>> {
  const { status, body } = await client.get(`/v1/jobs/${id}/explain`)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

serveTest('limits of a queue are set as a whole, shown, heeded and removed', async ({ open }) => {
  const client = await open()
  const shownOf = ({ limits, nextStart, groupsAtLimit, groupsHeld }: Record<string, unknown>) => ({
    ...{ limits, nextStart, groupsAtLimit, groupsHeld },
  })
  const shown = async () => shownOf((await client.get('/v1/queues/q')).body)
  const rate = { count: 5, per: 1000, burst: 5 }
  const all = { running: 2, rate, group: { running: 1, rate: { ...rate, burst: null } } }
  const set = await change(client, 'q', { limits: all })
  assert.equal(set.status, 200, JSON.stringify(set.body))
  assert.deepEqual(shownOf(set.body), { limits: all, ...FREE })
  const again = await change(client, 'q', { limits: (await shown()).limits })
  assert.deepEqual([again.status, shownOf(again.body)], [200, { limits: all, ...FREE }])
  for (const group of ['a', 'a', 'b', 'b']) await client.push('q', group, { group })
  assert.deepEqual(
    (await client.claim('q', { limit: 10 })).map(({ data }) => data),
    ['a', 'b'],
  )
  assert.deepEqual(await shown(), { limits: all, nextStart: null, groupsAtLimit: 2, groupsHeld: 0 })
  await change(client, 'q', { paused: false })
  assert.deepEqual(await shown(), { limits: all, nextStart: null, groupsAtLimit: 2, groupsHeld: 0 })

  const bad: [unknown, number][] = [
    [{ running: 0 }, 422],
    [{ running: 2 ** 31 }, 422],
    [{ rate: '5/second' }, 422],
    [{ rate: '5' }, 422],
    [{ rate: '' }, 422],
    [{ rate: '0/s' }, 400],
    [{ rate: '5/2d' }, 400],
    [{ rate: 5 }, 422],
    [{ rate: { count: 1 } }, 422],
    [{ group: { weight: 2 } }, 422],
    [{ rate: { count: 5000, per: 1 } }, 400],
    [{ group: { rate: { count: 1, per: 86_400_000, burst: 1_000_000 } } }, 400],
  ]
  for (const [limits, status] of bad) {
    isProblem(await change(client, 'q', { limits, capacity: 9 }), status, 'InvalidOption')
  }
  assert.equal((await client.get('/v1/queues/q')).body.capacity, 100_000)

  await change(client, 'q', { limits: { running: 3, group: null } })
  assert.deepEqual(await shown(), { limits: { running: 3, rate: null, group: NONE }, ...FREE })
  await change(client, 'q', { limits: null })
  assert.deepEqual(await shown(), { limits: { ...NONE, group: NONE }, ...FREE })
  assert.equal((await client.claim('q', { limit: 10 })).length, 2)
  isProblem(await change(client, 'other', {}), 404, 'QueueUnknown')
  const { limits } = (await change(client, 'other', { limits: { running: 2 ** 31 - 1, group: null } })).body
  assert.deepEqual(limits, { running: 2 ** 31 - 1, rate: null, group: null })
})

serveTest('a rate may be a text, as in the library', async ({ open }) => {
  const client = await open()
  const set = await change(client, 'q', { limits: { rate: '5/10s', group: { rate: '2000/h' } } })
  assert.deepEqual(set.body.limits, {
    ...{ running: null, rate: { count: 5, per: 10_000, burst: null } },
    group: { running: null, rate: { count: 2000, per: 3_600_000, burst: null } },
  })
  const own = await changeGroup(client, { group: 'a', rate: '1.5/s' })
  isProblem(own, 422, 'InvalidOption')
  const { limits } = (await changeGroup(client, { group: 'a', rate: '3/1.5s' })).body
  assert.deepEqual(limits, { running: null, rate: { count: 3, per: 1500, burst: null }, weight: 1 })
})

serveTest('groups are listed by pages, and one may have limits of its own, whatever its name', async ({ open }) => {
  const client = await open()
  const path = '/v1/queues/q/groups'
  isProblem(await client.get(path), 404, 'QueueUnknown')
  await change(client, 'q', { limits: { group: { running: 1 } } })
  const names = ['..', 'a/b c', '~', 'ä']
  await client.push('q', 'none')
  for (const group of names) for (let count = 0; count < 2; count++) await client.push('q', group, { group })

  const rate = { count: 1, per: 60_000 }
  const own = await changeGroup(client, { group: '..', running: 2, rate: { ...rate, burst: 9 }, weight: 4 })
  const limits = { running: 2, rate: { ...rate, burst: 9 }, weight: 4 }
  assert.deepEqual([own.status, own.body], [200, { group: '..', limits, waiting: 2, running: 0, nextStart: 0 }])
  assert.equal((await client.claim('q', { limit: 100 })).length, 6)

  const pages: unknown[] = []
  let next: unknown = ''
  for (let query = '?limit=1'; next !== undefined; query = `?limit=1&after=${encodeURIComponent(String(next))}`) {
    const { body } = await client.get(`${path}${query}`)
    assert.ok(Array.isArray(body.groups))
    pages.push(...body.groups)
    next = body.next
  }
  const shown = { limits: null, waiting: 1, running: 1, nextStart: null }
  assert.deepEqual(pages, [
    { ...shown, group: '', waiting: 0 },
    { ...shown, group: '..', limits, waiting: 0, running: 2 },
    ...['a/b c', '~', 'ä'].map((group) => ({ ...shown, group })),
  ])
  assert.deepEqual((await client.get(path)).body, { groups: pages })

  assert.equal((await changeGroup(client, { group: 'ä', running: 2 })).body.nextStart, 0)
  for (const nothing of [{}, { running: null, rate: null }]) {
    assert.deepEqual((await changeGroup(client, { group: 'ä', ...nothing })).body, { ...shown, group: 'ä' })
  }
  assert.deepEqual((await changeGroup(client, { group: 'idle' })).body, {
    ...{ group: 'idle', limits: null, waiting: 0, running: 0, nextStart: null },
  })
  await changeGroup(client, { group: '', running: 1 })
  await client.push('q', 'none')
  assert.deepEqual(await client.claim('q', { limit: 100 }), [])

  isProblem(await changeGroup(client, { running: 1 }), 422, 'InvalidOption')
  isProblem(await changeGroup(client, { group: '\0' }), 422, 'InvalidOption')
  isProblem(await changeGroup(client, { group: 'ä'.repeat(200) }), 400, 'InvalidName')
  isProblem(await changeGroup(client, { group: 'a', weight: 0 }), 422, 'InvalidOption')
  isProblem(await client.get(`${path}?after=%00`), 422, 'InvalidOption')
})

serveTest('the cost of a push is listed, and taken of the rate', async ({ open }) => {
  const client = await open()
  await change(client, 'q', { limits: { rate: { count: 3, per: 3_600_000, burst: 3 } } })
  const ids = [await client.push('q', 1, { cost: 3, group: 'g' }), await client.push('q', 2)]
  const { body } = await client.get('/v1/queues/q/jobs?state=waiting')
  assert.ok(Array.isArray(body.jobs))
  assert.deepEqual(
    body.jobs.map(({ id, cost, group }) => [id, cost, group]),
    [
      [ids[0], 3, 'g'],
      [ids[1], 1, undefined],
    ],
  )
  assert.equal((await client.claim('q', { limit: 2 })).length, 1)
  const many = { jobs: [{ data: 1, cost: 10_000 }] }
  assert.equal((await client.post('/v1/queues/q/batches', many)).status, 202)
  for (const cost of [0, 10_001, 1.5]) {
    isProblem(await client.post('/v1/queues/q/jobs', { data: 1, cost }), 422, 'InvalidOption')
  }
})

serveTest(
  'a release that is rate limited pauses the group, or the queue, and counts as no attempt',
  async ({ open }) => {
    const client = await open()
    await change(client, 'q', { limits: { group: {} } })
    const id = await client.push('q', 'a1', { group: 'a' })
    for (const group of ['a', 'b']) await client.push('q', `${group}2`, { group })
    const [job] = await client.claim('q')
    assert.equal(job?.id, id)
    const released = await client.post(`/v1/queues/q/jobs/${id}/release`, { fence: job.fence, rateLimited: MINUTE })
    assert.deepEqual([released.status, released.body], [200, { id, outcome: 'waiting' }])
    assert.equal((await client.get(`/v1/jobs/${id}`)).body.attempt, 0)
    assert.deepEqual(
      (await client.claim('q', { limit: 9 })).map(({ data }) => data),
      ['b2'],
    )
    const { reasons, text } = await explained(client, id)
    assert.ok(Array.isArray(reasons) && Date.parse(reasons[0].until) > Date.now() + MINUTE / 2)
    assert.deepEqual(reasons, [{ kind: 'groupRate', group: 'a', until: reasons[0].until }])
    assert.match(String(text), /^Job .* waits: the rate or a pause of its group a allows the next start at 20/)

    const ids = [await client.push('plain', 1), await client.push('plain', 2)]
    const [plain] = await client.claim('plain')
    const body = { release: [{ id: plain?.id, fence: plain?.fence, rateLimited: MINUTE }] }
    assert.deepEqual((await client.post('/v1/queues/plain/settle', body)).body.release, ['ok'])
    assert.deepEqual(await client.claim('plain'), [])
    const { limits, nextStart } = (await client.get('/v1/queues/plain')).body
    assert.ok(limits === null && Number(nextStart) > MINUTE / 2)
    assert.deepEqual(
      (await Promise.all(ids.map((one) => explained(client, one)))).map(({ reasons: told }) => {
        assert.ok(Array.isArray(told))
        return told.map(({ kind, jobs }) => [kind, jobs])
      }),
      [
        [['queueRate', undefined]],
        [
          ['queueRate', undefined],
          ['behind', 1],
        ],
      ],
    )
    for (const rateLimited of [0, 24.9 * 86_400_000, '30s']) {
      isProblem(await client.post(`/v1/queues/q/jobs/${id}/release`, { fence: 1, rateLimited }), 422, 'InvalidOption')
    }
  },
)

serveTest('a claim with minPriority gets urgent jobs only', async ({ open }) => {
  const client = await open()
  for (const priority of [3, 7, 9]) await client.push('q', priority, { priority })
  const claim = async (request: Record<string, unknown>) => {
    return (await client.claim('q', { limit: 10, ...request })).map(({ data }) => data)
  }
  assert.deepEqual(await claim({ minPriority: 8 }), [9])
  assert.deepEqual(await claim({ minPriority: 7 }), [7])
  assert.deepEqual(await claim({ minPriority: 4 }), [])
  assert.deepEqual(await claim({ minPriority: 0 }), [3])
  isProblem(await client.post('/v1/queues/q/claims', { minPriority: 10 }), 422, 'InvalidOption')
})

serveTest('explain tells why a job does not run', async ({ open }) => {
  const client = await open()
  await change(client, 'q', { limits: { running: 1 } })
  const first = await client.push('q', 1)
  const second = await client.push('q', 2)
  const later = await client.push('q', 3, { delay: MINUTE })
  assert.deepEqual((await explained(client, first)).reasons, [{ kind: 'noWorker', lastClaim: null }])
  await client.claim('q', { worker: 'w1' })
  const { text, ...facts } = await explained(client, first)
  assert.deepEqual(facts, { id: first, queue: 'q', state: 'running', reasons: [] })
  assert.equal(text, `Job ${first} runs on worker w1.`)
  await change(client, 'q', { paused: true })
  assert.deepEqual((await explained(client, second.toUpperCase())).reasons, [
    { kind: 'paused' },
    { kind: 'queueLimit', running: 1, limit: 1 },
  ])
  const { dueAt } = (await client.get(`/v1/jobs/${later}`)).body
  assert.deepEqual((await explained(client, later)).reasons, [{ kind: 'due', at: dueAt }])
  const packed = await client.raw('GET', `/v1/jobs/${later}/explain`, { headers: { accept: 'application/msgpack' } })
  assert.deepEqual(unpack(await packed.bytes()).reasons, [{ kind: 'due', at: dueAt }])
  for (const id of [newId(), 'x']) isProblem(await client.get(`/v1/jobs/${id}/explain`), 404, 'JobUnknown')
})

const LACKS = { priorities: false, limits: false, rates: false, groups: false }

/** A service on a memory store. */
async function onMemory(
  check: (ask: Client['ask'], store: Store, pond: Millpond) => Promise<void>,
  limits: boolean,
): Promise<void> {
  const store = meddled(await openStore('memory:', {}), {}, limits ? {} : LACKS)
  const pond = new Millpond(store, LIMITS.maxPayload)
  const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError: assert.ifError })
  const headers = { 'content-type': 'application/json' }
  try {
    await check(
      async (method, path, body) => {
        const init = body === undefined ? {} : { headers, body: JSON.stringify(body) }
        return answered(await service.handle(new Request(`http://localhost${path}`, { method, ...init })))
      },
      store,
      pond,
    )
  } finally {
    await service.drained()
    await pond.close()
  }
}

test('a job that another program made due after the last moment is explained, too', () =>
  onMemory(async (ask, store) => {
    const job: NewJob = {
      ...{ id: newId(), queue: 'q', priority: 4, delay: 0, runAt: 9e15, key: null, group: null, attempts: null },
      ...{ timeout: null, trace: null, data: { encoding: 'json', body: '1' } },
    }
    await store.operations.push({ jobs: [job] })
    const { status, body } = await ask('GET', `/v1/jobs/${job.id}/explain`)
    assert.deepEqual([status, body.reasons], [200, [{ kind: 'due', at: '9999-12-31T23:59:59.999Z' }]])
  }, true))

test('on a store without limits whatever needs them is refused with NotSupported, and nothing is changed', () =>
  onMemory(async (ask) => {
    const { body: pushed } = await ask('POST', '/v1/queues/q/jobs', { data: 1 })
    const { body: claimed } = await ask('POST', '/v1/queues/q/claims', { minPriority: 0 })
    assert.ok(Array.isArray(claimed.jobs))
    const [{ fence }] = claimed.jobs
    const id = String(pushed.id)
    const held = { fence, rateLimited: MINUTE }
    const requests: [string, string, unknown?][] = [
      ['POST', '/v1/queues/q/jobs', { data: 1, cost: 2 }],
      ['POST', '/v1/queues/q/batches', { jobs: [{ data: 1 }, { data: 1, cost: 2 }] }],
      ['PATCH', '/v1/queues/q', { paused: true, limits: { running: 1 } }],
      ['PATCH', '/v1/queues/q', { paused: true, limits: { rate: '1/s' } }],
      ['PATCH', '/v1/queues/q', { paused: true, limits: { group: { running: 1 } } }],
      ['PATCH', '/v1/queues/q/groups', { group: 'a', running: 1 }],
      ['GET', '/v1/queues/q/groups'],
      ['POST', '/v1/queues/q/claims', { minPriority: 1 }],
      ['POST', `/v1/queues/q/jobs/${id}/release`, held],
      ['POST', '/v1/queues/q/settle', { complete: [{ id, fence }], release: [{ id: newId(), ...held }] }],
    ]
    const { body: document } = await ask('GET', '/openapi.json')
    const { paths } = document as { paths: Record<string, Record<string, { responses: Record<string, unknown> }>> }
    for (const [method, path, body] of requests) {
      isProblem(await ask(method, path, body), 501, 'NotSupported')
      const named = path.replace('/queues/q', '/queues/{queue}').replace(id, '{id}')
      assert.ok(paths[named]?.[method.toLowerCase()]?.responses[501], named)
    }
    const { body: queue } = await ask('GET', '/v1/queues/q')
    assert.deepEqual([queue.paused, queue.limits], [false, null])
    assert.deepEqual(queue.counts, { blocked: 0, scheduled: 0, waiting: 0, running: 1, done: 0, dead: 0, cancelled: 0 })
    assert.equal((await ask('POST', `/v1/queues/q/jobs/${id}/release`, { fence })).status, 200)
  }, false))
