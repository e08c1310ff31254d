/** A job by its id: read, waited for, cancelled. Event streams are in follow-events.test.ts. */
import assert from 'node:assert/strict'
import { Packr } from 'msgpackr'
import { Millpond, MillpondError } from '../../src/index.ts'
import { ExpectedStarts, expectedWait } from '../../src/web/expected-start.ts'
import { follow } from '../../src/web/index.ts'
import { gate, inState } from '../api/suite.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { bodyOf, isProblem, webTest } from './serving.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

const asked = (id: string, headers: Record<string, string> = {}, method = 'GET', signal?: AbortSignal) =>
  new Request(`http://localhost/jobs/${id}`, { method, headers, ...(signal === undefined ? {} : { signal }) })

webTest('a job through its life: state, times, progress, result', async ({ pond }) => {
  const queue = pond.queue<{ to: string }>('emails')
  const handler = follow(pond)
  const { id } = await queue.push({ to: 'ada@example.org' }, { priority: 7, group: 'tenant-7', key: 'k', trace: 't' })
  const response = await handler(asked(id))
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(response.headers.get('vary'), 'accept, prefer')
  const waiting = await bodyOf(response)
  const { pushedAt, dueAt } = waiting
  assert.deepEqual(Object.keys(waiting).sort(), [
    ...['attempt', 'attempts', 'dueAt', 'expectedStart', 'id', 'priority', 'pushedAt', 'queue', 'state'],
  ])
  assert.deepEqual(
    [waiting.id, waiting.queue, waiting.state, waiting.priority, waiting.attempt, waiting.attempts],
    [id, 'emails', 'waiting', 7, 0, 10],
  )
  const stored = await pond.job(id)
  assert.deepEqual([pushedAt, dueAt], [stored?.pushedAt.toISOString(), stored?.dueAt.toISOString()])

  const end = gate()
  queue.work(async (_, ctx) => {
    ctx.progress({ sent: 3 })
    await end.opened
    return { ok: true, missing: undefined }
  })
  await inState(pond, id, 'running')
  await until(async () => (await pond.job(id))?.progress !== undefined)
  const running = await bodyOf(await handler(asked(id)))
  assert.deepEqual([running.state, running.attempt, running.progress], ['running', 1, { sent: 3 }])
  assert.equal('expectedStart' in running, false)
  end.open()
  const done = await inState(pond, id, 'done')
  const body = await bodyOf(await handler(asked(id)))
  assert.deepEqual([body.state, body.result, body.finishedAt], ['done', { ok: true }, done.finishedAt?.toISOString()])
  for (const secret of ['data', 'worker', 'trace', 'group', 'key']) assert.equal(secret in body, false, secret)
})

webTest('the error of a dead job: name, message and code, never the stack', async ({ pond }) => {
  const queue = pond.queue('q', { retry: { attempts: 1 } })
  queue.work(() => {
    throw new RangeError('no such address')
  })
  const { id } = await queue.push(1)
  await inState(pond, id, 'dead')
  const text = await (await follow(pond)(asked(id))).text()
  assert.deepEqual(JSON.parse(text).error, { name: 'RangeError', message: 'no such address', code: 'HandlerFailed' })
  assert.doesNotMatch(text, /\.ts:/)
})

webTest('what JSON cannot hold is text there, and itself in MessagePack', async ({ pond }) => {
  const queue = pond.queue('q')
  queue.work(() => ({
    bytes: Buffer.from('hé'),
    big: 2n ** 60n,
    small: 5n,
    list: [new Uint8Array([255])],
    inf: Infinity,
  }))
  const { id } = await queue.push(1)
  await inState(pond, id, 'done')
  const handler = follow(pond)
  const json = await bodyOf(await handler(asked(id)))
  assert.deepEqual(json.result, { bytes: 'aMOp', big: '1152921504606846976', small: 5, list: ['/w=='], inf: null })
  const packed = await handler(asked(id, { accept: 'application/msgpack' }))
  const value = new Packr({ useRecords: false, int64AsType: 'bigint' }).unpack(
    new Uint8Array(await packed.arrayBuffer()),
  )
  assert.deepEqual(
    [value.result.big, Buffer.from(value.result.bytes).toString(), value.result.inf],
    [2n ** 60n, 'hé', Number.POSITIVE_INFINITY],
  )
})

webTest('no such job, and what is no id: 404', async ({ pond }) => {
  const handler = follow(pond)
  for (const id of [UNKNOWN, 'x', '', '%00', '..%2f..%2fetc', `${UNKNOWN}/`, `${UNKNOWN}x`, 'ü', 'x'.repeat(10_000)]) {
    for (const method of ['GET', 'DELETE']) await isProblem(await handler(asked(id, {}, method)), 404, 'JobUnknown')
    assert.equal((await handler(asked(id, {}, 'HEAD'))).status, 404)
  }
})

webTest("another tenant's job is a 404 like any other, to read and to cancel", async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = follow(pond, {
    guard: async (request, job) => job.group !== null && job.group === request.headers.get('x-tenant'),
  })
  const { id } = await queue.push(1, { group: 'ada' })
  const { id: nobodys } = await queue.push(1)
  const none = await (await handler(asked(UNKNOWN, { 'x-tenant': 'ada' }))).text()
  for (const [job, tenant] of [
    [id, 'bob'],
    [nobodys, ''],
  ] as const) {
    for (const method of ['GET', 'DELETE']) {
      const response = await handler(
        asked(job, { 'x-tenant': tenant, accept: 'text/event-stream', prefer: 'wait=9' }, method),
      )
      assert.equal(response.status, 404)
      assert.equal(await response.text(), none)
    }
  }
  assert.equal((await pond.job(id))?.state, 'waiting')
  assert.equal((await handler(asked(id, { 'x-tenant': 'ada' }))).status, 200)
  assert.equal((await handler(asked(id, { 'x-tenant': 'ada' }, 'DELETE'))).status, 200)
})

webTest('a guard that says anything but true refuses', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const answers: unknown[] = [undefined, null, 1, 'yes', {}]
  const guard = () => answers.shift() as boolean
  const handler = follow(pond, { guard })
  for (let times = answers.length; times > 0; times--) await isProblem(await handler(asked(id)), 404, 'JobUnknown')
})

webTest('a guard that answers with a Response: it is sent, and nothing is cancelled', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const handler = follow(pond, { guard: async () => new Response('who are you?', { status: 401 }) })
  for (const method of ['GET', 'HEAD', 'DELETE']) assert.equal((await handler(asked(id, {}, method))).status, 401)
  assert.equal((await pond.job(id))?.state, 'waiting')
  assert.equal((await handler(asked(UNKNOWN))).status, 404)
})

webTest('the id may be elsewhere in the request', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const handler = follow(pond, { id: (request) => new URL(request.url).searchParams.get('job') ?? undefined })
  assert.equal((await handler(new Request(`http://localhost/?job=${id}`))).status, 200)
  await isProblem(await handler(new Request('http://localhost/')), 404, 'JobUnknown')
})

webTest('DELETE cancels; a second time, too; a finished job: 409', async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = follow(pond)
  const { id } = await queue.push(1)
  for (let times = 0; times < 2; times++) {
    const response = await handler(asked(id, {}, 'DELETE'))
    assert.deepEqual([response.status, await bodyOf(response)], [200, { id, state: 'cancelled' }])
  }
  const { id: other } = await queue.push(2)
  queue.work(() => 'done')
  await inState(pond, other, 'done')
  const document = await isProblem(await handler(asked(other, {}, 'DELETE')), 409)
  assert.deepEqual([document.id, document.state], [other, 'done'])
})

webTest('other methods: 405', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  for (const method of ['POST', 'PUT', 'PATCH', 'OPTIONS']) {
    const response = await follow(pond)(asked(id, {}, method))
    assert.equal(response.headers.get('allow'), 'GET, HEAD, DELETE')
    await isProblem(response, 405)
  }
})

webTest('HEAD is GET without a body', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const handler = follow(pond)
  const get = await handler(asked(id))
  const head = await handler(asked(id, { accept: 'text/event-stream', prefer: 'wait=50' }, 'HEAD'))
  assert.equal(head.status, 200)
  assert.equal(head.headers.get('etag'), get.headers.get('etag'))
  assert.equal(await head.text(), '')
})

webTest('an ETag that changes when the job does', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  const handler = follow(pond)
  const etag = (await handler(asked(id))).headers.get('etag') ?? ''
  assert.match(etag, /^W\/"[\w-]{22}"$/)
  for (const known of [etag, etag.slice(2), `"x", ${etag}`, '*']) {
    const same = await handler(asked(id, { 'if-none-match': known }))
    assert.deepEqual([same.status, same.headers.get('etag'), await same.text()], [304, etag, ''])
  }
  await pond.cancel(id)
  const changed = await handler(asked(id, { 'if-none-match': etag }))
  assert.equal(changed.status, 200)
  assert.notEqual(changed.headers.get('etag'), etag)
})

webTest('long poll: until the state changes', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  const handler = follow(pond)
  const end = gate()
  const first = handler(asked(id, { prefer: 'wait=20' }))
  queue.work(() => end.opened)
  const running = await first
  assert.equal(running.headers.get('preference-applied'), 'wait=20')
  assert.equal((await bodyOf(running)).state, 'running')
  const second = handler(asked(id, { prefer: 'wait=20' }))
  end.open()
  assert.equal((await bodyOf(await second)).state, 'done')
  // Final: there is nothing to wait for, nor a place to be taken.
  const third = await follow(pond, { maxFollowers: 0 })(asked(id, { prefer: 'wait=20' }))
  assert.deepEqual([(await bodyOf(third)).state, third.headers.get('preference-applied')], ['done', 'wait=20'])
})

webTest(
  'long poll with an ETag: until the job is another than the known one, be it by its progress',
  async ({ pond }) => {
    const queue = pond.queue('q', { lease: '150ms' })
    const { id } = await queue.push(1)
    const handler = follow(pond)
    const end = gate()
    const further = gate()
    queue.work(async (_, ctx) => {
      await further.opened
      ctx.progress(50)
      await end.opened
    })
    await inState(pond, id, 'running')
    const etag = (await handler(asked(id))).headers.get('etag') ?? ''
    const waiting = handler(asked(id, { prefer: 'wait=20', 'if-none-match': etag }))
    further.open()
    assert.equal((await bodyOf(await waiting)).progress, 50)
    // What the client knows is old: no wait.
    assert.equal((await bodyOf(await handler(asked(id, { prefer: 'wait=20', 'if-none-match': etag })))).progress, 50)
    end.open()
  },
)

webTest('long poll in vain: the job as it is, or 304', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const handler = follow(pond, { longPoll: 30 })
  const response = await handler(asked(id, { prefer: 'wait=99' }))
  assert.deepEqual([(await bodyOf(response)).state, response.headers.get('preference-applied')], ['waiting', 'wait=1'])
  const known = { prefer: 'wait=99', 'if-none-match': response.headers.get('etag') ?? '' }
  assert.equal((await handler(asked(id, known))).status, 304)
  const never = await follow(pond, { longPoll: 0 })(asked(id, { prefer: 'wait=99' }))
  assert.equal(never.headers.get('preference-applied'), null)
})

webTest('long polls beyond the limit are answered at once; those who leave make room', async ({ pond, serve }) => {
  const { id } = await pond.queue('q').push(1)
  let asking = 0
  const handler = follow(pond, { maxFollowers: 1, guard: () => ++asking > 0 })
  const origin = await serve(handler)
  const leaving = new AbortController()
  const headers = { prefer: 'wait=60' }
  const first = fetch(`${origin}/jobs/${id}`, { headers, signal: leaving.signal })
  await until(() => asking === 1)
  await until(async () => (await handler(asked(id, { prefer: 'wait=0' }))).headers.get('preference-applied') === null)
  leaving.abort()
  await assert.rejects(first)
  await until(
    async () => (await handler(asked(id, { prefer: 'wait=0' }))).headers.get('preference-applied') === 'wait=0',
  )
})

webTest('a job that is gone while it is waited for: 404', async ({ pond }) => {
  const queue = pond.queue('q', { keep: { done: 0 } })
  const { id } = await queue.push(1)
  const end = gate()
  queue.work(() => end.opened)
  await inState(pond, id, 'running')
  const waiting = follow(pond)(asked(id, { prefer: 'wait=20' }))
  end.open()
  await isProblem(await waiting, 404, 'JobUnknown')
})

webTest('a pond that closes while a job is waited for: 503', async () => {
  const closing = await Millpond.open('memory:')
  const { id } = await closing.queue('q').push(1)
  let looks = 0
  const watched = {
    job: (asked: string) => closing.job(asked).finally(() => looks++),
    result: closing.result.bind(closing),
    cancel: closing.cancel.bind(closing),
    queue: closing.queue.bind(closing),
    on: closing.on.bind(closing),
  }
  const waiting = follow(watched)(asked(id, { prefer: 'wait=20' }))
  await until(() => looks >= 2)
  await closing.close()
  await isProblem(await waiting, 503, 'Closed')
})

webTest("the store's troubles: 503 and 500 without particulars, and a passing one is waited out", async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const errors: unknown[] = []
  let trouble: Error | undefined
  const failing = {
    job: (asked: string) => (trouble ? Promise.reject(trouble) : pond.job(asked)),
    result: pond.result.bind(pond),
    cancel: pond.cancel.bind(pond),
    queue: pond.queue.bind(pond),
    on: pond.on.bind(pond),
  }
  const handler = follow(failing, { onError: (error) => errors.push(error) })
  trouble = new MillpondError('StoreUnavailable', 'no route to db-7.internal')
  const document = await isProblem(await handler(asked(id)), 503, 'StoreUnavailable')
  assert.doesNotMatch(JSON.stringify(document), /db-7/)
  for (const unexpected of [new TypeError('hunter2'), new MillpondError('PayloadNotDecodable', 'damaged')]) {
    trouble = unexpected
    await isProblem(await handler(asked(id)), 500)
  }
  assert.deepEqual(errors.map(String), [
    'MillpondError: no route to db-7.internal',
    'TypeError: hunter2',
    'MillpondError: damaged',
  ])

  trouble = undefined
  const waiting = handler(asked(id, { prefer: 'wait=20' }))
  trouble = new MillpondError('StoreUnavailable', 'away')
  await pond.cancel(id)
  trouble = undefined
  assert.equal((await bodyOf(await waiting)).state, 'cancelled')
})

webTest('progress and endings of another process are seen', async () => {
  // Two ponds on one file stand for two processes: what happens in one rings no event in the other.
  const { mkdtempSync, rmSync } = await import('node:fs')
  const folder = mkdtempSync('/tmp/millpond-follow-')
  const [here, there] = [await Millpond.open(`sqlite:${folder}/a.db`), await Millpond.open(`sqlite:${folder}/a.db`)]
  try {
    const { id } = await here.queue('q').push(1)
    const handler = follow(here)
    const end = gate()
    const waiting = handler(asked(id, { prefer: 'wait=20' }))
    there.queue('q', { lease: '150ms' }).work(async (_, ctx) => {
      ctx.progress('half')
      await end.opened
      return 'all'
    })
    assert.equal((await bodyOf(await waiting)).state, 'running')
    await until(async () => (await bodyOf(await handler(asked(id)))).progress === 'half')
    const last = handler(asked(id, { prefer: 'wait=20' }))
    end.open()
    assert.equal((await bodyOf(await last)).result, 'all')
  } finally {
    await Promise.all([here.close({ timeout: 100 }), there.close({ timeout: 100 })])
    rmSync(folder, { recursive: true })
  }
})

webTest('when a waiting job is expected to start', async ({ pond }) => {
  const report = await pond.queue('q').stats()
  const measured = (p50: number) => ({ count: 1, p50, p95: p50, p99: p50 })
  const slice = (priority: number, p50: number) => ({ priority, wait: measured(p50), run: report.run })
  assert.equal(expectedWait(report, 4), undefined)
  assert.equal(expectedWait({ ...report, oldestWaiting: 70 }, 4), 70)
  const one = { ...report, wait: measured(50), priorities: [slice(4, 50)] }
  assert.equal(expectedWait(one, 4), 50)
  assert.equal(expectedWait({ ...one, oldestWaiting: 70 }, 4), 70)
  assert.equal(expectedWait({ ...one, oldestWaiting: 30 }, 7), 50)
  const two = { ...one, oldestWaiting: 900, priorities: [slice(7, 5), slice(4, 800)] }
  assert.equal(expectedWait(two, 7), 5)
  assert.equal(expectedWait(two, 1), 900)
  assert.equal(expectedWait({ ...two, paused: true }, 7), undefined)

  const queue = pond.queue('paused')
  await queue.pause()
  const { id } = await queue.push(1)
  assert.equal('expectedStart' in (await bodyOf(await follow(pond)(asked(id)))), false)
  const later = await pond.queue('later').push(1, { delay: '1h' })
  const job = await pond.job(later.id)
  const { expectedStart } = await bodyOf(await follow(pond)(asked(later.id)))
  assert.equal(expectedStart, undefined)
  assert.ok(job)
})

webTest('figures are asked for once, however many follow', async ({ pond }) => {
  const queue = pond.queue('q')
  const pushed = await queue.pushMany([1, 2, 3])
  let asks = 0
  const counted = {
    job: pond.job.bind(pond),
    result: pond.result.bind(pond),
    cancel: pond.cancel.bind(pond),
    on: pond.on.bind(pond),
    queue: (name: string) => {
      asks++
      return pond.queue(name)
    },
  }
  const handler = follow(counted)
  const starts = await Promise.all(
    pushed.map(async ({ id }) => Date.parse(String((await bodyOf(await handler(asked(id)))).expectedStart))),
  )
  assert.equal(asks, 1)
  assert.ok(starts.every((start) => start >= Date.now() - 10_000))
})

webTest('figures are kept of no more than a thousand queues', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const job = await pond.job(id)
  assert.ok(job)
  const asks: string[] = []
  const expected = new ExpectedStarts({
    queue: (name: string) => {
      asks.push(name)
      return pond.queue(name)
    },
  })
  const names = Array.from({ length: 1001 }, (_, index) => `q${index}`)
  for (const queue of [...names, 'q1000', 'q0']) await expected.of({ ...job, queue })
  assert.deepEqual(asks, [...names, 'q0'])
})

webTest('its options are checked when it is made', async ({ pond }) => {
  assert.throws(() => follow(pond, { heartbeat: 1 }), coded('InvalidOption', /heartbeat/))
  assert.throws(
    () => follow(pond, { ...{ heartbeat: '1s', maxfollowers: 1 } }),
    coded('InvalidOption', /unknown option "maxfollowers"/),
  )
})
