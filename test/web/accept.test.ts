/** A POST becomes a job: what is taken, what is answered, and what can be set. */
import assert from 'node:assert/strict'
import { Packr } from 'msgpackr'
import { z } from 'zod'
import { Millpond, MillpondError } from '../../src/index.ts'
import type { JobReader } from '../../src/pond/internals.ts'
import { accept } from '../../src/web/index.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { acceptedId, bodyOf, isProblem, lookedAt, posted, raw, webTest } from './serving.ts'

const pack = (value: unknown) => new Uint8Array(new Packr({ useRecords: false }).pack(value))
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

webTest('JSON becomes a job: 202, Location, id and state', async ({ pond }) => {
  const handler = accept(pond.queue('emails'))
  const response = await handler(posted({ to: 'ada@example.org', nested: [1, null, 'ü'] }))
  assert.equal(response.status, 202)
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.equal(response.headers.get('cache-control'), 'no-store')
  const location = response.headers.get('location')
  const { id, state, ...rest } = await bodyOf(response)
  assert.deepEqual([state, rest, location], ['waiting', {}, `/jobs/${String(id)}`])
  const job = await pond.job(String(id))
  assert.deepEqual(job?.data, { to: 'ada@example.org', nested: [1, null, 'ü'] })
  assert.equal(job?.state, 'waiting')
})

webTest('whatever JSON is, be it no object', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  for (const data of [null, 0, 'text', [1, [2]], true]) {
    assert.deepEqual((await pond.job(await acceptedId(await handler(posted(data)))))?.data, data)
  }
  const typed = raw('{"a":1}', 'Application/LD+JSON; Charset="UTF-8"')
  assert.deepEqual((await pond.job(await acceptedId(await handler(typed))))?.data, { a: 1 })
})

webTest('forms become objects, repeated names arrays', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const dataOf = async (request: Request) => (await pond.job(await acceptedId(await handler(request))))?.data
  const wanted = { name: 'Ada L & co', tag: ['a', 'b', 'c'], toString: '', note: 'zwölf' }
  const form = new URLSearchParams('name=Ada+L+%26+co&tag=a&tag=b&tag=c&toString=&note=zw%C3%B6lf')
  assert.deepEqual(await dataOf(raw(form)), wanted)
  const multipart = new FormData()
  for (const [name, value] of form) multipart.append(name, value)
  assert.deepEqual(await dataOf(raw(multipart)), wanted)
  assert.deepEqual(await dataOf(raw('', 'application/x-www-form-urlencoded')), {})
})

webTest('MessagePack, under each of its names, with bytes and integers of 64 bits', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  for (const type of ['application/msgpack', 'application/vnd.msgpack', 'application/x-msgpack']) {
    const body = pack({ bytes: Buffer.from([1, 2, 255]), big: 2n ** 63n, list: [-1, 1.5, 'x'.repeat(300), null] })
    const job = await pond.job(await acceptedId(await handler(raw(body, type))))
    assert.deepEqual(job?.data, {
      bytes: new Uint8Array([1, 2, 255]),
      big: 2n ** 63n,
      list: [-1, 1.5, 'x'.repeat(300), null],
    })
  }
  // 5 as an integer of 64 bits, as encoders of typed languages write it: a number, as a schema would have it.
  const wide = new Uint8Array([0x81, 0xa1, 0x6e, 0xcf, 0, 0, 0, 0, 0, 0, 0, 5])
  assert.deepEqual((await pond.job(await acceptedId(await handler(raw(wide, 'application/msgpack')))))?.data, { n: 5 })
})

webTest('an answer in MessagePack for whoever prefers it', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const typeFor = async (accepted: string) => {
    const response = await handler(posted(1, { accept: accepted }))
    await acceptedId(response.clone())
    return response.headers.get('content-type')
  }
  assert.equal(await typeFor('application/msgpack'), 'application/msgpack')
  assert.equal(await typeFor('application/json;q=0.5, application/x-msgpack'), 'application/msgpack')
  assert.equal(await typeFor('application/json, application/msgpack'), 'application/json')
  assert.equal(await typeFor('application/msgpack;q=0.1, */*;q=0.2'), 'application/json')
  assert.equal(await typeFor('application/msgpack;q=2'), 'application/json')
  assert.equal(await typeFor('text/html'), 'application/json')
  assert.equal(await typeFor('text/event-stream'), 'application/json')
  assert.equal(await typeFor(`application/msgpack, x/${'x'.repeat(5000)}`), 'application/json')
})

webTest('a schema: 422 with its issues, nothing stored', async ({ pond }) => {
  const schema = z.object({ to: z.email(), copies: z.number().max(3).optional() })
  const queue = pond.queue('emails', { schema })
  const handler = accept(queue)
  await acceptedId(await handler(posted({ to: 'ada@example.org' })))
  const document = await isProblem(await handler(posted({ to: 'nobody', copies: 9 })), 422, 'SchemaMismatch')
  assert.ok(Array.isArray(document.issues))
  assert.deepEqual(
    document.issues.map((issue) => issue.path),
    ['to', 'copies'],
  )
  assert.equal((await queue.stats()).counts.waiting, 1)
})

webTest('the payload and the push are made from the request', async ({ pond }) => {
  const queue = pond.queue<{ user: string; body: unknown }>('q')
  const handler = accept(queue, {
    data: async (request, body) => ({ user: request.headers.get('x-user') ?? 'none', body: await body() }),
    push: (_, data) => ({ priority: 9, group: data.user, key: 'only:one', delay: '1h' }),
    existing: 'shared',
  })
  const response = await handler(posted({ a: 1 }, { 'x-user': 'ada' }))
  const body = await bodyOf(response)
  assert.equal(body.state, 'scheduled')
  const job = await pond.job(String(body.id))
  assert.deepEqual(job?.data, { user: 'ada', body: { a: 1 } })
  assert.deepEqual([job?.priority, job?.group, job?.key, job?.state], [9, 'ada', 'only:one', 'scheduled'])
  // The key is taken, so this one is that job.
  assert.equal(await acceptedId(await handler(posted({ a: 2 }))), body.id)
})

webTest('data may do without a body, and may refuse', async ({ pond }) => {
  const handler = accept(pond.queue<string>('q'), {
    data: (request) => {
      const name = new URL(request.url).searchParams.get('name')
      return name ?? new Response('no name', { status: 418 })
    },
  })
  const ask = (url: string) => handler(new Request(url, { method: 'POST' }))
  assert.equal((await pond.job(await acceptedId(await ask('http://localhost/?name=ada'))))?.data, 'ada')
  assert.equal((await ask('http://localhost/')).status, 418)
})

webTest('a guard refuses before anything is read, with anything but true', async ({ pond }) => {
  const queue = pond.queue('q')
  const answers: Record<string, unknown> = {
    no: new Response('who are you?', { status: 401 }),
    ...{ never: false, maybe: undefined, null: null, one: 1, text: 'yes', object: {} },
    yes: true,
  }
  const handler = accept(queue, { guard: async (request) => answers[request.headers.get('x-user') ?? ''] as boolean })
  const refusedOne = posted(1, { 'x-user': 'no' })
  assert.equal((await handler(refusedOne)).status, 401)
  assert.equal(refusedOne.bodyUsed, false)
  for (const user of ['never', 'maybe', 'null', 'one', 'text', 'object']) {
    await isProblem(await handler(posted(1, { 'x-user': user })), 403)
  }
  assert.equal((await queue.stats()).counts.waiting, 0)
  await acceptedId(await handler(posted(1, { 'x-user': 'yes' })))
})

webTest('trace context travels with the job; what is invalid begins anew', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const traceOf = async (traceparent: string) =>
    (await pond.job(await acceptedId(await handler(posted(1, { traceparent })))))?.trace
  assert.equal(await traceOf(TRACE), TRACE)
  assert.equal(await traceOf(`cc${TRACE.slice(2)}-what-the-future-brings`), `cc${TRACE.slice(2)}`)
  for (const bad of [
    ...['', 'x', TRACE.toUpperCase(), `${TRACE}-more`, `ff${TRACE.slice(2)}`, `${TRACE}, ${TRACE}`],
    ...[TRACE.replace(/-0af.*9c-/, `-${'0'.repeat(32)}-`), TRACE.replace(/-b7.*31-/, `-${'0'.repeat(16)}-`)],
    `01${TRACE.slice(2)}-${'x'.repeat(5000)}`,
  ]) {
    assert.equal(await traceOf(bad), null, bad)
  }
})

webTest('Location is where one says', async ({ pond }) => {
  const handler = accept(pond.queue('q'), { location: 'https://api.example.org/v1/jobs/:id/state' })
  const response = await handler(posted(1))
  const { id } = await bodyOf(response)
  assert.equal(response.headers.get('location'), `https://api.example.org/v1/jobs/${String(id)}/state`)
})

webTest('only POST', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'BREW']) {
    const response = await handler(new Request('http://localhost/', { method }))
    assert.equal(response.headers.get('allow'), 'POST')
    await isProblem(response, 405)
  }
})

webTest('a full queue: 503 with Retry-After, up to doubled by chance', async ({ pond }) => {
  const queue = pond.queue('q', { capacity: 1 })
  const handler = accept(queue, { retryAfter: '10s' })
  await acceptedId(await handler(posted(1)))
  const told = new Set<number>()
  for (let times = 0; times < 50; times++) {
    const response = await handler(posted(2))
    const seconds = Number(response.headers.get('retry-after'))
    assert.ok(seconds >= 10 && seconds <= 20, `${seconds}`)
    told.add(seconds)
    await isProblem(response, 503, 'QueueFull')
  }
  assert.ok(told.size > 1)
  assert.equal((await queue.stats()).counts.waiting, 1)
})

webTest('a pond that begins to close: what waits is answered with what is known', async () => {
  const closing = await Millpond.open('memory:')
  const handler = accept(closing.queue('q'), { onError: () => assert.fail('heard of') })
  const waiting = handler(posted(1, { prefer: 'wait=50' }))
  await until(async () => (await closing.stats())[0]?.counts.waiting === 1)
  let told: Response | undefined
  await closing.close({
    before: async () => {
      told = await waiting
    },
    timeout: '25s',
  })
  assert.ok(told)
  const { state } = await bodyOf(told)
  assert.deepEqual([told.status, state], [202, 'waiting'])
})

webTest('a closed pond: 503', async () => {
  const closing = await Millpond.open('memory:')
  const queue = closing.queue('q')
  await closing.close()
  const errors: unknown[] = []
  const response = await accept(queue, { onError: (error) => errors.push(error) })(posted(1))
  assert.ok(response.headers.has('retry-after'))
  await isProblem(response, 503, 'Closed')
  assert.deepEqual(errors, [])
})

webTest("the store's troubles: 503 without particulars, and onError hears of them", async ({ pond }) => {
  for (const code of ['StoreUnavailable', 'StoreBusy', 'StoreFull', 'StoreFailed'] as const) {
    const error = new MillpondError(code, 'cannot open /var/lib/secret.db on db-7.internal')
    const errors: unknown[] = []
    const queue = { name: 'q', pond, push: () => Promise.reject(error) }
    const document = await isProblem(
      await accept(queue, { onError: (heard) => errors.push(heard) })(posted(1)),
      503,
      code,
    )
    assert.doesNotMatch(JSON.stringify(document), /secret|internal/)
    assert.deepEqual(errors, [error])
  }
})

webTest(
  'what nobody expected: 500 without particulars, and onError hears of it, even a broken one',
  async ({ pond }) => {
    const error = new TypeError('password is hunter2')
    const errors: unknown[] = []
    const broken = {
      guard: () => {
        throw error
      },
    }
    const handler = accept(pond.queue('q'), { ...broken, onError: (heard) => errors.push(heard) })
    const document = await isProblem(await handler(posted(1)), 500)
    assert.doesNotMatch(JSON.stringify(document), /hunter2/)
    assert.deepEqual(errors, [error])

    const warnings: Error[] = []
    const listen = (warning: Error) => warnings.push(warning)
    process.on('warning', listen)
    const throwing = accept(pond.queue('q'), {
      ...broken,
      onError: () => {
        throw new Error('the hook broke')
      },
    })
    await isProblem(await throwing(posted(1)), 500)
    const silent = accept(pond.queue('q'), broken)
    for (let times = 0; times < 3; times++) await isProblem(await silent(posted(1)), 500)
    await until(() => warnings.length >= 3)
    process.off('warning', listen)
    // Class and place, and not the message, in which there may be anything.
    for (const { message } of warnings) assert.doesNotMatch(message, /the hook broke|hunter2/)
    assert.deepEqual(
      warnings.map(({ message }) => /^(\w+) at .*accept\.test\.ts/.exec(message)?.[1]),
      ['Error', 'TypeError', 'TypeError'],
    )
  },
)

webTest('options of the push that the request made invalid: 400', async ({ pond }) => {
  const handler = accept(pond.queue('q'), {
    push: (request) => ({
      key: request.headers.get('x-key') ?? '',
      priority: Number(request.headers.get('x-priority')),
    }),
  })
  await isProblem(await handler(posted(1, { 'x-key': 'k', 'x-priority': '11' })), 400, 'InvalidOption')
  await isProblem(await handler(posted(1, { 'x-priority': '1' })), 400, 'InvalidName')
})

webTest('its own options are checked when it is made', async ({ pond }) => {
  const queue = pond.queue('q')
  const bad: [object, RegExp][] = [
    [{ maxbody: 1 }, /unknown option "maxbody"/],
    [{ maxBody: -1 }, /maxBody/],
    [{ location: '/jobs' }, /:id/],
    [{ longPoll: '25d' }, /longPoll/],
    [{ bodyTimeout: 0 }, /bodyTimeout/],
    [{ guard: true }, /guard/],
    [{ pond }, /unknown option "pond"/],
    [{ idempotency: { key: 1 } }, /unknown option "key"/],
    [{ existing: true }, /existing/],
  ]
  for (const [options, message] of bad) {
    assert.throws(() => accept(queue, options), coded('InvalidOption', message))
  }
})

webTest('Prefer: wait gives the result if it comes in time', async ({ pond }) => {
  const queue = pond.queue<number>('q')
  const worker = queue.work((job) => ({ twice: job.data * 2, bytes: new Uint8Array([1, 2]) }))
  const handler = accept(queue)
  const response = await handler(posted(21, { prefer: 'respond-async, wait="10"; x=y' }))
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('preference-applied'), 'wait=10')
  const { id, state, result } = await bodyOf(response)
  assert.deepEqual([state, result], ['done', { twice: 42, bytes: 'AQI=' }])
  assert.equal(response.headers.get('location'), `/jobs/${String(id)}`)
  const packed = await bodyOf(await handler(posted(1, { prefer: 'WAIT=5', accept: 'application/msgpack' })))
  assert.deepEqual(packed.result, { twice: 2, bytes: new Uint8Array([1, 2]) })
  await worker.close()
})

webTest('Prefer: wait is over before the job: 202, and the job goes on', async ({ pond }) => {
  const queue = pond.queue('q')
  const handler = accept(queue, { longPoll: 20 })
  for (const prefer of ['wait=0', 'wait=99999', 'wait=1, wait=7']) {
    const response = await handler(posted(1, { prefer }))
    assert.equal(response.headers.get('preference-applied'), prefer === 'wait=0' ? 'wait=0' : 'wait=1')
    const body = await bodyOf(response)
    assert.deepEqual([response.status, body.state], [202, 'waiting'])
  }
  for (const prefer of [
    'wait',
    'wait=',
    'wait=-1',
    'wait=1.5',
    'wait=9999999999',
    'nowait=3',
    `${'x'.repeat(5000)}, wait=1`,
  ]) {
    const response = await handler(posted(1, { prefer }))
    assert.equal(response.headers.get('preference-applied'), null, prefer)
    await acceptedId(response)
  }
})

webTest('Prefer: wait on a job that dies, is cancelled or not kept', async ({ pond }) => {
  const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
  queue.work(() => {
    throw new RangeError('no such address')
  })
  const handler = accept(queue)
  const dead = await bodyOf(await handler(posted('x', { prefer: 'wait=10' })))
  assert.deepEqual(
    [dead.state, dead.error],
    ['dead', { name: 'RangeError', message: 'no such address', code: 'HandlerFailed' }],
  )
  const fleeting = pond.queue<string>('fleeting', { keep: { done: 0 } })
  fleeting.work(() => 'gone')
  const gone = await accept(fleeting)(posted('x', { prefer: 'wait=10' }))
  const { id, ...rest } = await bodyOf(gone)
  assert.deepEqual([gone.status, rest], [202, {}])
  assert.equal(await pond.job(String(id)), undefined)
})

webTest('Prefer: wait where no wait is allowed, or with all places taken, waits for nothing', async ({ pond }) => {
  const queue = pond.queue('q')
  const alone = await accept(queue, { longPoll: 0 })(posted(1, { prefer: 'wait=60' }))
  assert.deepEqual([alone.status, alone.headers.get('preference-applied')], [202, null])
  const handler = accept(queue, { maxWaiting: 1 })
  const leaving = new AbortController()
  const first = handler(new Request(posted(1, { prefer: 'wait=60' }), { signal: leaving.signal }))
  await until(async () => (await queue.stats()).counts.waiting === 2)
  const second = await handler(posted(1, { prefer: 'wait=60' }))
  assert.deepEqual([second.status, second.headers.get('preference-applied')], [202, null])
  leaving.abort()
  assert.equal((await first).status, 202)
  const third = await handler(posted(1, { prefer: 'wait=0' }))
  assert.equal(third.headers.get('preference-applied'), 'wait=0')
})

webTest('a client that hangs up ends its wait, and its job stays', async ({ pond, serve }) => {
  const queue = pond.queue('q')
  let over = 0
  const result: JobReader['result'] = (id, options) => pond.result(id, options).finally(() => over++)
  const origin = await serve(accept(lookedAt(queue, { result })))
  const leaving = new AbortController()
  const headers = { 'content-type': 'application/json', prefer: 'wait=60' }
  const answer = fetch(origin, { method: 'POST', headers, body: '1', signal: leaving.signal })
  await until(async () => (await queue.stats()).counts.waiting === 1)
  assert.equal(over, 0)
  leaving.abort()
  await assert.rejects(answer)
  await until(() => over === 1)
  assert.equal((await queue.stats()).counts.waiting, 1)
})

webTest('a wait that fails does not undo the push: 202', async ({ pond }) => {
  const errors: unknown[] = []
  const failing = {
    result: () => Promise.reject(new Error('lost')),
    job: () => Promise.reject(new MillpondError('StoreUnavailable', 'gone')),
  }
  const handler = accept(lookedAt(pond.queue('q'), failing), { onError: (error) => errors.push(error) })
  await acceptedId(await handler(posted(1, { prefer: 'wait=5' })))
  assert.deepEqual(errors.map(String), ['Error: lost', 'MillpondError: gone'])
})
