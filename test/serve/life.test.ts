/** Whole lives of jobs over HTTP. */
import assert from 'node:assert/strict'
import { Packr } from 'msgpackr'
import { until } from '../support/until.ts'
import { type Answered, isProblem, onStores } from './client.ts'

const packr = new Packr({ useRecords: false })

onStores('life over HTTP', {
  'push, claim, extend, complete, follow': async ({ open }) => {
    const client = await open()
    const pushed = await client.post('/v1/queues/emails/jobs', { data: { to: 'ada' }, priority: 7, group: 'g' })
    assert.equal(pushed.status, 202)
    assert.equal(pushed.headers.get('location'), `/v1/jobs/${pushed.body.id}`)
    const [job] = await client.claim('emails', { worker: 'w1', limit: 5 })
    assert.ok(job)
    const { leaseUntil: _lease, pushedAt: _pushed, dueAt: _due, fence, ...facts } = { pushedAt: '', dueAt: '', ...job }
    assert.deepEqual(facts, {
      ...{ id: pushed.body.id, queue: 'emails', attempt: 1, attempts: 10, priority: 7, group: 'g' },
      data: { to: 'ada' },
    })
    const path = `/v1/queues/emails/jobs/${job.id}`
    assert.equal((await client.post(`${path}/extend`, { fence, lease: 60_000, progress: 0.5 })).status, 200)
    const running = (await client.get(`/v1/jobs/${job.id}`)).body
    assert.deepEqual([running.state, running.progress], ['running', 0.5])
    const done = await client.post(`${path}/complete`, { fence, result: { sent: true } })
    assert.deepEqual(done.body, { id: job.id, outcome: 'done' })
    const { body } = await client.get(`/v1/jobs/${job.id}`)
    assert.deepEqual([body.state, body.result], ['done', { sent: true }])
    assert.deepEqual(await client.claim('emails'), [])
    const report = (await client.get('/v1/queues/emails')).body
    assert.deepEqual(report.counts, {
      blocked: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      done: 1,
      dead: 0,
      cancelled: 0,
    })
  },

  'lines of a log, with every operation on a claim': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1)
    const path = `/v1/queues/q/jobs/${id}`
    const claimed = async () => (await client.claim('q'))[0]?.fence ?? 0
    let fence = await claimed()
    const line = (message: string, more: object = {}) => ({ message, ...more })
    const at = '2026-01-01T00:00:00.000Z'
    const extended = {
      fence,
      log: [line('extended', { at, fields: { n: 1 } }), line('same', { at }), line('same', { at })],
    }
    assert.equal((await client.post(`${path}/extend`, extended)).status, 200)
    await client.post(`${path}/release`, { fence, log: [line('released')] })
    fence = await claimed()
    await client.post(`${path}/fail`, { fence, retry: 0, log: [line('failed\0\ud800')] })
    fence = await claimed()
    assert.equal((await client.post(`${path}/complete`, { fence, log: 'no' })).status, 422)
    assert.equal((await client.post(`${path}/complete`, { fence, log: Array(101).fill(line('many')) })).status, 422)
    await client.post('/v1/queues/q/settle', { complete: [{ id, fence, log: [line('m'.repeat(3000))] }] })
    const { log } = (await client.get(`/v1/jobs/${id}`)).body
    assert.ok(Array.isArray(log))
    const expected = ['extended', 'same', 'same', 'released', 'failed\0\ufffd', `${'m'.repeat(2000)}…`]
    assert.deepEqual(
      log.map(({ message }) => message),
      expected,
    )
    assert.deepEqual(log[0], { at, message: 'extended', fields: { n: 1 } })
    assert.equal(log[5].cut, true)
    assert.equal((await client.post(`${path}/complete`, { fence, log: [line('late')] })).status, 409)
    const { body } = await client.get('/v1/queues/q/jobs?state=done')
    assert.deepEqual(Object.keys(Object(body.jobs)[0] ?? {}).includes('log'), false)
  },

  'fail with a delay, at once, by the backoff, for good; requeue': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1)
    const path = `/v1/queues/q/jobs/${id}`
    const claimed = async () => {
      let fence = 0
      await until(async () => {
        fence = (await client.claim('q'))[0]?.fence ?? 0
        return fence > 0
      }, 'a claim')
      return fence
    }
    const told = { name: 'SmtpError', message: 'no\0 such \ud800 host', stack: 'here\nthere' }
    const later = await client.post(`${path}/fail`, { fence: await claimed(), error: told, retry: 20 })
    assert.deepEqual(later.body, { id, outcome: 'retry' })
    const { error } = (await client.get(`/v1/jobs/${id}`)).body
    assert.deepEqual(error, { name: 'SmtpError', message: 'no\\0 such \ufffd host', code: 'HandlerFailed' })
    await client.post(`${path}/fail`, { fence: await claimed(), retry: 0 })
    await client.post(`${path}/fail`, { fence: await claimed() })
    const { body } = await client.get(`/v1/jobs/${id}`)
    // The third attempt: 4 s, at least half of it.
    const delay = Date.parse(String(body.dueAt)) - Date.parse(String(body.startedAt))
    assert.ok(body.state === 'scheduled' && delay >= 2000, String(delay))

    const dead = await client.push('r', 2)
    const fence = (await client.claim('r'))[0]?.fence ?? 0
    assert.deepEqual((await client.post(`/v1/queues/r/jobs/${dead}/fail`, { fence, retry: false })).body, {
      id: dead,
      outcome: 'dead',
    })
    const listed = (await client.get('/v1/queues/r/jobs?state=dead')).body
    assert.ok(Array.isArray(listed.jobs) && listed.jobs.length === 1 && listed.next === undefined)
    const [entry] = listed.jobs
    assert.deepEqual([entry.id, entry.data, entry.error.code, entry.worker], [dead, 2, 'GaveUp', 'http'])
    assert.deepEqual((await client.post(`/v1/jobs/${dead}/requeue`)).body, { id: dead, state: 'waiting' })
    isProblem(await client.post(`/v1/jobs/${dead}/requeue`), 409, 'InvalidOption')
    const [again] = await client.claim('r')
    assert.deepEqual([again?.attempt, again?.fence], [1, fence + 1])
    await client.post(`/v1/queues/r/jobs/${dead}/fail`, { fence: fence + 1, retry: false })
    assert.deepEqual((await client.post('/v1/queues/r/requeue')).body, { requeued: 1 })
    assert.equal(await client.state(dead), 'waiting')
  },

  'two workers: what one lost to its lease is stale for it, and done by the other': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 'x')
    const [first] = await client.claim('q', { worker: 'slow', lease: 1000 })
    const fence = first?.fence ?? 0
    const [second] = await client.claim('q', { worker: 'quick' }, { prefer: 'wait=20' })
    assert.deepEqual([second?.id, second?.fence, second?.attempt], [id, fence + 1, 2])
    const path = `/v1/queues/q/jobs/${id}`
    for (const word of ['complete', 'fail', 'release', 'extend']) {
      isProblem(await client.post(`${path}/${word}`, { fence }), 409, 'StaleAttempt')
    }
    assert.equal((await client.post(`${path}/complete`, { fence: fence + 1, result: 'by quick' })).status, 200)
    isProblem(await client.post(`${path}/complete`, { fence: fence + 1 }), 409, 'StaleAttempt')
    assert.equal((await client.get(`/v1/jobs/${id}`)).body.result, 'by quick')
  },

  'a claim of another queue is stale; released, the attempt does not count': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 'x')
    const fence = (await client.claim('q'))[0]?.fence ?? 0
    isProblem(await client.post(`/v1/queues/other/jobs/${id}/complete`, { fence }), 409, 'StaleAttempt')
    const released = await client.post(`/v1/queues/q/jobs/${id}/release`, { fence })
    assert.deepEqual(released.body, { id, outcome: 'waiting' })
    const [again] = await client.claim('q')
    assert.deepEqual([again?.attempt, again?.fence], [1, fence + 1])
  },

  'cancelled while it runs: the worker is told why its claim is over': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 'x')
    const fence = (await client.claim('q'))[0]?.fence ?? 0
    const cancelled = await client.ask('DELETE', `/v1/jobs/${id}`)
    assert.deepEqual(cancelled.body, { id, state: 'cancelled' })
    isProblem(await client.post(`/v1/queues/q/jobs/${id}/extend`, { fence }), 409, 'JobCancelled')
    isProblem(await client.post(`/v1/queues/q/jobs/${id}/complete`, { fence }), 409, 'StaleAttempt')
    const gone = await client.ask('DELETE', `/v1/jobs/${id}`)
    assert.equal(gone.status, 200)
  },

  'many at once: pushed in order, settled in one go': async ({ open }) => {
    const client = await open()
    const jobs = Array.from({ length: 30 }, (_, index) => ({ data: index }))
    const { status, body } = await client.post('/v1/queues/q/batches', { jobs }, { 'idempotency-key': 'k' })
    assert.equal(status, 202)
    const again = await client.post('/v1/queues/q/batches', { jobs }, { 'idempotency-key': 'k' })
    const ids = (answer: Answered) => (Array.isArray(answer.body.jobs) ? answer.body.jobs.map(({ id }) => id) : [])
    assert.deepEqual(ids(again), ids({ status, body, headers: again.headers }))
    const claims = await client.claim('q', { limit: 100 })
    assert.deepEqual(
      claims.map(({ data }) => data),
      jobs.map(({ data }) => data),
    )
    const told = claims.map(({ id, fence }) => ({ id, fence }))
    const settled = await client.post('/v1/queues/q/settle', {
      complete: [...told.slice(0, 10).map((one) => ({ ...one, result: one.id })), { id: told[0]?.id, fence: 9 }],
      fail: [{ ...told[10], retry: false }, ...told.slice(11, 20)],
      release: told.slice(20),
    })
    assert.deepEqual(settled.body, {
      complete: [...Array(10).fill('ok'), 'stale'],
      fail: ['dead', ...Array(9).fill('retry')],
      release: Array(10).fill('ok'),
    })
    const { counts } = (await client.get('/v1/queues/q')).body
    assert.deepEqual(counts, { blocked: 0, scheduled: 9, waiting: 10, running: 0, done: 10, dead: 1, cancelled: 0 })
  },

  'a batch that finds the queue full tells how far it came, and can be sent again': async ({ open }) => {
    const client = await open()
    assert.equal((await client.ask('PATCH', '/v1/queues/q', { capacity: 2 })).body.capacity, 2)
    const jobs = [1, 2, 3].map((data) => ({ data }))
    const full = await client.post('/v1/queues/q/batches', { jobs })
    isProblem(full, 503, 'QueueFull')
    assert.ok(Number(full.headers.get('retry-after')) >= 1)
    assert.ok(full.body.pushed === 2 && Array.isArray(full.body.ids))
    await client.claim('q', { limit: 2 })
    const repeated = { jobs: full.body.ids.map((id, index) => ({ id, data: index + 1 })) }
    const { body } = await client.post('/v1/queues/q/batches', repeated)
    assert.deepEqual(Array.isArray(body.jobs) && body.jobs.map(({ existing }) => existing), [true, true, false])
    await client.push('q', 4)
    isProblem(await client.post('/v1/queues/q/jobs', { data: 5 }), 503, 'QueueFull')
  },

  'Prefer: wait brings the result; Idempotency-Key makes one job of two requests': async ({ open }) => {
    const client = await open()
    const headers = { prefer: 'wait=20', 'idempotency-key': 'once' }
    const waiting = client.post('/v1/queues/q/jobs', { data: 1 }, headers)
    const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
    assert.ok(job)
    await client.post(`/v1/queues/q/jobs/${job.id}/complete`, { fence: job.fence, result: 'r' })
    const { status, body } = await waiting
    assert.deepEqual([status, body.state, body.result], [200, 'done', 'r'])
    const again = await client.post('/v1/queues/q/jobs', { data: 1 }, { 'idempotency-key': 'once' })
    assert.deepEqual([again.status, again.body], [202, { id: job.id, state: 'done' }])
    isProblem(await client.post('/v1/queues/q/jobs', { data: 2 }, { 'idempotency-key': 'once' }), 422, 'InvalidOption')
    const id = job.id
    // An id of one's own counts before the key, and pushes of it store nothing, whatever they hold.
    const own = await client.post('/v1/queues/q/jobs', { data: 3, id }, { 'idempotency-key': 'another' })
    assert.deepEqual([own.status, own.body], [202, { id, state: 'done' }])
    isProblem(
      await client.post('/v1/queues/q/jobs', { data: 3, id }, { 'idempotency-key': 'a,b' }),
      400,
      'InvalidOption',
    )
  },

  'paused: pushes are taken, claims find nothing until it is resumed': async ({ open }) => {
    const client = await open()
    assert.equal((await client.ask('PATCH', '/v1/queues/q', { paused: true })).body.paused, true)
    await client.push('q', 1)
    assert.deepEqual(await client.claim('q'), [])
    const waiting = client.claim('q', {}, { prefer: 'wait=20' })
    await client.ask('PATCH', '/v1/queues/q', { paused: false })
    assert.equal((await waiting).length, 1)
  },

  'what a queue says of attempts, timeout, lease and backoff holds for pushes, claims and failures that name none':
    async ({ open }) => {
      const client = await open()
      const backoff = { base: 50, factor: 1, max: 50, jitter: 0 }
      await client.ask('PATCH', '/v1/queues/q', { attempts: 2, timeout: 9000, lease: 5000, backoff })
      isProblem(await client.ask('PATCH', '/v1/queues/q', { backoff: { base: 50 } }), 422, 'InvalidOption')
      const id = await client.push('q', 1)
      const before = Date.now()
      const [job] = await client.claim('q')
      assert.deepEqual([job?.attempts, job?.timeout], [2, 9000])
      const lease = Date.parse(String(job?.leaseUntil)) - before
      assert.ok(lease >= 5000 && lease < 5000 + (Date.now() - before) + 1000, `${lease}`)
      await client.post(`/v1/queues/q/jobs/${id}/fail`, { fence: job?.fence })
      const [again] = await client.claim('q', {}, { prefer: 'wait=20' })
      assert.equal(again?.attempt, 2)
      assert.equal((await client.post(`/v1/queues/q/jobs/${id}/fail`, { fence: again?.fence })).body.outcome, 'dead')
    },

  'due later: claimed when it is, without a worker process': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1, { delay: 30 })
    await client.push('q', 2, { runAt: new Date(Date.now() + 3_600_000).toISOString() })
    const [job] = await client.claim('q', {}, { prefer: 'wait=20' })
    assert.equal(job?.id, id)
    const { jobs } = (await client.get('/v1/queues/q/jobs?state=scheduled')).body
    assert.equal(Array.isArray(jobs) && jobs[0].data, 2)
  },

  'MessagePack both ways, bytes as bytes; in JSON as base64': async ({ open }) => {
    const client = await open()
    const data = { file: Buffer.from([0, 255]), n: 2n ** 60n }
    const headers = { 'content-type': 'application/msgpack', accept: 'application/msgpack' }
    const sent = new Uint8Array(packr.pack({ data, key: 'k' }))
    const response = await client.raw('POST', '/v1/queues/q/jobs', { headers, body: sent })
    assert.deepEqual([response.status, response.headers.get('content-type')], [202, 'application/msgpack'])
    const { id } = packr.unpack(new Uint8Array(await response.arrayBuffer()))
    const claimed = await client.raw('POST', '/v1/queues/q/claims', { headers, body: new Uint8Array([0x80]) })
    const { jobs } = packr.unpack(new Uint8Array(await claimed.arrayBuffer()))
    assert.deepEqual([jobs[0].id, jobs[0].data.n, jobs[0].key], [id, data.n, 'k'])
    assert.deepEqual(Buffer.from(jobs[0].data.file), data.file)
    const result = new Uint8Array(packr.pack({ fence: jobs[0].fence, result: Buffer.from([1, 2, 3]) }))
    await client.raw('POST', `/v1/queues/q/jobs/${id}/complete`, { headers, body: result })
    assert.equal((await client.get(`/v1/jobs/${id}`)).body.result, 'AQID')
    const report = await client.raw('GET', '/v1/queues', { headers: { accept: 'application/msgpack' } })
    assert.equal(packr.unpack(new Uint8Array(await report.arrayBuffer())).queues[0].queue, 'q')
  },

  'names with slashes, pages of a list': async ({ open }) => {
    const client = await open()
    const name = 'a/b:c.d'
    await client.post(`/v1/queues/${encodeURIComponent(name)}/batches`, {
      jobs: Array.from({ length: 25 }, (_, data) => ({ data })),
    })
    const path = `/v1/queues/${encodeURIComponent(name)}/jobs?state=waiting&limit=12`
    const seen: unknown[] = []
    for (let next = ''; ; ) {
      const { body } = await client.get(`${path}${next}`)
      assert.ok(Array.isArray(body.jobs))
      seen.push(...body.jobs.map(({ data }) => data))
      if (body.next === undefined) break
      next = `&after=${body.next}`
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 25 }, (_, index) => index),
    )
  },
})
