/** What is refused, and as what. */
import assert from 'node:assert/strict'
import { isProblem, serveTest } from './client.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

serveTest('paths and methods: 400, 404, 405 with Allow', async ({ open }) => {
  const client = await open()
  for (const path of [
    '/',
    '/v1',
    '/v1/',
    '/v1/queues/',
    '/v1/queues/q/',
    '/v1/jobs/',
    '/v2/queues',
    '/v1/queues/q/jobs/x/eat',
    '//healthz',
  ]) {
    isProblem(await client.get(path), 404)
  }
  for (const path of ['/%', '/v1/queues/%ff', '/v1/jobs/%zz']) {
    isProblem(await client.get(path), 400, 'InvalidPath')
  }
  const allowed: [string, string, string][] = [
    ['DELETE', '/v1/queues', 'GET, HEAD'],
    ['PUT', '/v1/queues/q', 'GET, HEAD, PATCH, DELETE'],
    ['PUT', '/v1/queues/q/jobs', 'POST, GET, HEAD'],
    ['GET', '/v1/queues/q/claims', 'POST'],
    ['OPTIONS', `/v1/jobs/${UNKNOWN}`, 'GET, HEAD, DELETE, PATCH'],
    ['post', '/healthz', 'GET, HEAD'],
    ['BREW', '/openapi.json', 'GET, HEAD'],
  ]
  for (const [method, path, allow] of allowed) {
    const refused = await client.ask(method, path)
    isProblem(refused, 405)
    assert.equal(refused.headers.get('allow'), allow)
  }
  const head = await client.raw('HEAD', '/v1/queues')
  assert.equal(head.status, 200)
})

serveTest('queues that are not there: 404, but to claim from them and to make them', async ({ open }) => {
  const client = await open()
  const views = ['', '/jobs?state=dead', '/jobs?state=waiting', '/groups']
  const isUnknown = async () => {
    for (const path of views) isProblem(await client.get(`/v1/queues/q${path}`), 404, 'QueueUnknown')
    isProblem(await client.post('/v1/queues/q/requeue'), 404, 'QueueUnknown')
    isProblem(await client.ask('PATCH', '/v1/queues/q', {}), 404, 'QueueUnknown')
  }
  await isUnknown()
  assert.deepEqual(await client.claim('q'), [])
  await isUnknown()
  assert.equal((await client.ask('PATCH', '/v1/queues/q', { paused: true })).status, 200)
  for (const path of views) assert.equal((await client.get(`/v1/queues/q${path}`)).status, 200)
  assert.deepEqual((await client.post('/v1/queues/q/requeue')).body, { requeued: 0 })
  assert.equal((await client.ask('PATCH', '/v1/queues/q', {})).status, 200)
  await client.push('r', 1)
  for (const path of views) assert.equal((await client.get(`/v1/queues/r${path}`)).status, 200)
})

serveTest('names and ids that are none', async ({ open }) => {
  const client = await open()
  for (const name of ['-x', '%20', 'a%20b', 'x'.repeat(129), '%00', '%F0%9F%A6%86', '%2Fetc']) {
    const path = `/v1/queues/${name}`
    isProblem(await client.get(path), 400, 'InvalidName')
    isProblem(await client.get(`${path}/jobs?state=dead`), 400, 'InvalidName')
    isProblem(await client.ask('PATCH', path, { paused: true }), 400, 'InvalidName')
    for (const [word, body] of Object.entries({
      jobs: { data: 1 },
      claims: {},
      settle: {},
      batches: { jobs: [{ data: 1 }] },
    })) {
      isProblem(await client.post(`${path}/${word}`, body), 400, 'InvalidName')
    }
    isProblem(await client.post(`${path}/requeue`), 400, 'InvalidName')
    isProblem(await client.post(`${path}/jobs/${UNKNOWN}/complete`, { fence: 1 }), 400, 'InvalidName')
  }
  for (const id of ['none', '0', `${UNKNOWN}0`, '%2f', UNKNOWN.replace('7', 'z')]) {
    isProblem(await client.get(`/v1/jobs/${id}`), 404, 'JobUnknown')
    isProblem(await client.ask('DELETE', `/v1/jobs/${id}`), 404, 'JobUnknown')
    isProblem(await client.post(`/v1/jobs/${id}/requeue`), 404, 'JobUnknown')
    for (const word of ['complete', 'fail', 'release', 'extend']) {
      isProblem(await client.post(`/v1/queues/q/jobs/${id}/${word}`, { fence: 1 }), 404, 'JobUnknown')
    }
  }
  // A UUID that nobody has may have been somebody's: a claim on it is over.
  isProblem(await client.post(`/v1/queues/q/jobs/${UNKNOWN}/complete`, { fence: 1 }), 409, 'StaleAttempt')
  isProblem(await client.get(`/v1/jobs/${UNKNOWN}`), 404, 'JobUnknown')
  assert.deepEqual((await client.get('/v1/queues')).body, { queues: [] })
})

serveTest('bodies of another shape: 422 with what is wrong, nothing stored', async ({ open }) => {
  const client = await open()
  const jobs = '/v1/queues/q/jobs'
  const bad: [string, unknown, RegExp][] = [
    [jobs, {}, /data is missing/],
    [jobs, [], /must be an object/],
    [jobs, null, /must be an object/],
    [jobs, { data: 1, prio: 1 }, /unknown member "prio"/],
    [jobs, { data: 1, priority: 10 }, /priority must be at most 9/],
    [jobs, { data: 1, priority: 1.5 }, /priority must be an integer/],
    [jobs, { data: 1, priority: '1' }, /priority must be an integer/],
    [jobs, { data: 1, delay: '30s' }, /delay must be an integer/],
    [jobs, { data: 1, delay: -1 }, /delay must be at least 0/],
    [jobs, { data: 1, delay: 1, runAt: 1 }, /not both/],
    [jobs, { data: 1, runAt: 'tomorrow' }, /runAt must be/],
    [jobs, { data: 1, runAt: '2030-13-01T00:00:00Z' }, /runAt must be/],
    [jobs, { data: 1, key: '' }, /key must have 1 characters at least/],
    [jobs, { data: 1, key: 'a\0' }, /key must match/],
    [jobs, { data: 1, key: 'x'.repeat(256) }, /key must have 255/],
    [jobs, { data: 1, id: 'mine' }, /id must be a UUID/],
    [jobs, { data: 1, attempts: 0 }, /attempts must be at least 1/],
    ['/v1/queues/q/batches', { jobs: [] }, /1 items at least/],
    ['/v1/queues/q/batches', { jobs: Array(1001).fill({ data: 1 }) }, /1000 items at most/],
    ['/v1/queues/q/batches', { jobs: [{ data: 1 }, { data: 2, key: 1 }] }, /jobs\.1\.key must be a string/],
    ['/v1/queues/q/claims', { limit: 0 }, /limit/],
    ['/v1/queues/q/claims', { limit: 101 }, /limit/],
    ['/v1/queues/q/claims', { lease: 999 }, /lease/],
    ['/v1/queues/q/claims', { worker: 'a\nb' }, /worker/],
    [`/v1/queues/q/jobs/${UNKNOWN}/complete`, {}, /fence is missing/],
    [`/v1/queues/q/jobs/${UNKNOWN}/complete`, { fence: 0 }, /fence/],
    [`/v1/queues/q/jobs/${UNKNOWN}/complete`, { fence: 1e300 }, /fence/],
    [`/v1/queues/q/jobs/${UNKNOWN}/fail`, { fence: 1, retry: true }, /retry must be/],
    [`/v1/queues/q/jobs/${UNKNOWN}/fail`, { fence: 1, error: 'no' }, /error must be an object/],
    ['/v1/queues/q/settle', { complete: [{ id: UNKNOWN }] }, /complete\.0 fence is missing/],
  ]
  for (const [path, body, message] of bad) {
    const refused = await client.post(path, body)
    isProblem(refused, 422, 'InvalidOption')
    assert.match(String(refused.body.detail), message)
    assert.ok(Array.isArray(refused.body.issues) && refused.body.issues.length <= 20)
  }
  isProblem(await client.ask('PATCH', '/v1/queues/q', { capacity: 0 }), 422, 'InvalidOption')
  assert.deepEqual((await client.get('/v1/queues')).body, { queues: [] })
})

serveTest('a batch with one bad job stores none of it', async ({ open }) => {
  const client = await open({ maxPayload: 100 })
  const jobs = [{ data: 1 }, { data: 'x'.repeat(200) }, { data: 3 }]
  isProblem(await client.post('/v1/queues/q/batches', { jobs }), 413, 'PayloadTooLarge')
  isProblem(
    await client.post('/v1/queues/q/batches', { jobs: [{ data: 1 }, { data: 1, key: 'ü'.repeat(200) }] }),
    400,
    'InvalidName',
  )
  assert.deepEqual((await client.get('/v1/queues')).body, { queues: [] })
})

serveTest('queries: 422 for what is unknown, doubled, missing or out of range', async ({ open }) => {
  const client = await open()
  const bad = [
    'state=dead',
    'limit=0',
    'limit=101',
    'limit=1.5',
    'limit=',
    'limit=1&limit=2',
    'after=x',
    'page=2',
    '__proto__=1',
  ]
  for (const query of bad) isProblem(await client.get(`/v1/queues/q/jobs?state=dead&${query}`), 422, 'InvalidOption')
  for (const query of ['minutes=61', 'minutes=-1', 'minutes=five']) {
    isProblem(await client.get(`/v1/queues?${query}`), 422, 'InvalidOption')
  }
  for (const query of ['', '?', '?limit=5', '?state=lost', '?state=', '?State=dead']) {
    isProblem(await client.get(`/v1/queues/q/jobs${query}`), 422, 'InvalidOption')
  }
  isProblem(await client.get('/healthz?x=1'), 422, 'InvalidOption')
})

serveTest('Accept: 406 where nothing of it is on offer', async ({ open }) => {
  const client = await open()
  const id = await client.push('q', 1)
  for (const accept of ['text/html', 'image/*', 'application/json;q=0', 'text/event-stream', 'nonsense']) {
    isProblem(await client.get('/v1/queues', { accept }), 406)
  }
  isProblem(await client.get(`/v1/jobs/${id}`, { accept: 'text/html' }), 406)
  for (const accept of [
    '',
    '*/*',
    'text/html, */*;q=0.1',
    'application/*',
    'APPLICATION/JSON',
    'application/vnd.msgpack;q=0.1, application/json',
  ]) {
    assert.equal((await client.get('/v1/queues', { accept })).status, 200, accept)
  }
})

serveTest(
  'bodies over the limit and bodies that break off: 413, 400; the payload limit is the stored one',
  async ({ open }) => {
    const client = await open({ maxBody: 2000, maxPayload: 1000 })
    isProblem(await client.post('/v1/queues/q/jobs', { data: 'x'.repeat(3000) }), 413, 'PayloadTooLarge')
    isProblem(await client.post('/v1/queues/q/jobs', { data: 'x'.repeat(1500) }), 413, 'PayloadTooLarge')
    const id = await client.push('q', 1)
    await client.claim('q')
    const path = `/v1/queues/q/jobs/${id}`
    isProblem(await client.post(`${path}/complete`, { fence: 1, result: 'x'.repeat(1500) }), 413, 'PayloadTooLarge')
    isProblem(await client.post(`${path}/extend`, { fence: 1, progress: 'x'.repeat(1500) }), 413, 'PayloadTooLarge')
    assert.equal(await client.state(id), 'running')
    const headers = { 'content-type': 'application/json' }
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) })
    const init: RequestInit = { method: 'POST', headers, body, duplex: 'half' }
    const response = await client.served.handle(new Request('http://localhost/v1/queues/q/jobs', init))
    assert.equal(response.status, 400)
  },
)

serveTest('jobs that cannot be cancelled or brought back: 409 with their state', async ({ open }) => {
  const client = await open()
  const id = await client.push('q', 1)
  const waiting = await client.post(`/v1/jobs/${id}/requeue`)
  isProblem(waiting, 409, 'InvalidOption')
  assert.equal(waiting.body.state, 'waiting')
  await client.claim('q')
  await client.post(`/v1/queues/q/jobs/${id}/complete`, { fence: 1 })
  const done = await client.ask('DELETE', `/v1/jobs/${id}`)
  isProblem(done, 409)
  assert.equal(done.body.state, 'done')
})

serveTest('closing it with wrong options rejects, and closes nothing', async ({ open }) => {
  const client = await open()
  const closing = client.served.close({ timeout: -1 })
  await assert.rejects(closing, { code: 'InvalidOption' })
  assert.equal((await client.get('/v1/queues')).status, 200)
})

serveTest('a service that is closed: 503 with Retry-After', async ({ open }) => {
  const client = await open()
  await client.push('q', 1)
  client.served.stop()
  assert.equal((await client.claim('q')).length, 1)
  await client.served.close()
  const calls: [string, string, unknown][] = [
    ['POST', '/v1/queues/q/jobs', { data: 1 }],
    ['POST', '/v1/queues/q/batches', { jobs: [{ data: 1 }] }],
    ['POST', '/v1/queues/q/claims', {}],
    ['GET', '/v1/queues', undefined],
    ['GET', '/healthz', undefined],
  ]
  for (const [method, path, body] of calls) {
    const refused = await client.ask(method, path, body)
    isProblem(refused, 503, 'Closed')
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  }
})

serveTest('a push that is refused holds no place among those that wait', async ({ open }) => {
  const client = await open({ maxWaiting: 1 })
  const push = (queue: string, data: unknown) =>
    client.post(`/v1/queues/${queue}/jobs`, { data }, { prefer: 'wait=1', 'idempotency-key': 'k' })
  isProblem(await push('-bad-', 1), 400, 'InvalidName')
  assert.equal((await push('q', 1)).headers.get('preference-applied'), 'wait=1')
  isProblem(await push('q', 2), 422, 'InvalidOption')
  assert.equal((await push('q', 1)).headers.get('preference-applied'), 'wait=1')
})
