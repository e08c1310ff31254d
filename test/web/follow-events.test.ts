/** A job followed by server-sent events. */
import assert from 'node:assert/strict'
import compression from 'compression'
import express from 'express'
import { Millpond, MillpondError } from '../../src/index.ts'
import type { JobReader } from '../../src/pond/internals.ts'
import { follow } from '../../src/web/index.ts'
import { toNode } from '../../src/web/node.ts'
import { gate, inState } from '../api/suite.ts'
import { until } from '../support/until.ts'
import { bodyOf, isProblem, webTest } from './serving.ts'

interface Event {
  event: string
  id: string | undefined
  data: Record<string, unknown>
}

const EVENTS = { accept: 'text/event-stream' }

const asked = (id: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  new Request(`http://localhost/jobs/${id}`, { headers: { ...EVENTS, ...headers }, ...(signal ? { signal } : {}) })

/** The events of an answer, one after another; comments as events named `:`. */
async function* events(response: Response): AsyncGenerator<Event> {
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  assert.ok(response.body)
  let text = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      yield parsed(text.slice(0, end))
      text = text.slice(end + 2)
    }
  }
  assert.equal(text, '')
}

function parsed(block: string): Event {
  const fields = new Map(
    block.split('\n').map((line) => [line.split(': ', 1)[0] ?? '', line.slice(line.indexOf(': ') + 2)]),
  )
  if (fields.has('')) return { event: ':', id: undefined, data: {} }
  return { event: fields.get('event') ?? '', id: fields.get('id'), data: JSON.parse(fields.get('data') ?? 'null') }
}

async function next(stream: AsyncGenerator<Event>): Promise<Event> {
  const { value, done } = await stream.next()
  assert.ok(!done)
  return value
}

/** What `follow` needs of a pond, each replaceable. */
const parts = (pond: Millpond) => ({
  job: pond.job.bind(pond),
  result: pond.result.bind(pond) as JobReader['result'],
  cancel: pond.cancel.bind(pond),
  queue: pond.queue.bind(pond),
  on: pond.on.bind(pond),
})

webTest('state, progress, done, and the end', async ({ pond, serve }) => {
  const queue = pond.queue('q', { lease: '150ms' })
  const origin = await serve(follow(pond))
  const { id } = await queue.push(1)
  const response = await fetch(`${origin}/jobs/${id}`, { headers: EVENTS })
  assert.equal(response.headers.get('cache-control'), 'no-store, no-transform')
  assert.equal(response.headers.get('x-accel-buffering'), 'no')
  const stream = events(response)
  const first = await next(stream)
  assert.deepEqual([first.event, first.data.id, first.data.state, first.id], ['state', id, 'waiting', undefined])
  const [further, end] = [gate(), gate()]
  queue.work(async (_, ctx) => {
    await further.opened
    ctx.progress({ sent: 1 })
    await end.opened
    return { lines: 'one\ntwo\n\nthree' }
  })
  const second = await next(stream)
  assert.deepEqual([second.event, second.data.state, second.data.attempt], ['state', 'running', 1])
  further.open()
  const third = await next(stream)
  assert.deepEqual([third.event, third.data.progress, third.data.state], ['progress', { sent: 1 }, 'running'])
  end.open()
  const last = await next(stream)
  assert.deepEqual(
    [last.event, last.data.state, last.data.result, last.id],
    [...['done', 'done', { lines: 'one\ntwo\n\nthree' }, 'last']],
  )
  assert.equal((await stream.next()).done, true)
})

webTest('lines of a log are shown where asked for, and a new one is an event', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  const end = gate()
  queue.work(async (_, ctx) => {
    ctx.log('first', { n: 1 })
    await end.opened
  })
  const stream = events(await follow(pond, { log: true })(asked(id)))
  let seen = await next(stream)
  while (seen.data.log === undefined) seen = await next(stream)
  assert.deepEqual([seen.event, seen.data.state], ['progress', 'running'])
  assert.ok(Array.isArray(seen.data.log))
  const { at, ...line } = seen.data.log[0]
  assert.ok(Number.isFinite(Date.parse(at)))
  assert.deepEqual(line, { attempt: 1, message: 'first', fields: { n: 1 } })
  const plain = new Request(`http://localhost/jobs/${id}`)
  assert.equal((await bodyOf(await follow(pond)(plain))).log, undefined)
  end.open()
  assert.equal((await next(stream)).event, 'done')
  assert.equal((await stream.next()).done, true)
})

webTest('an attempt that fails is a new state; a dead job is done, with its error', async ({ pond }) => {
  const queue = pond.queue('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 10 } } })
  const { id } = await queue.push(1)
  const stream = events(await follow(pond)(asked(id)))
  await next(stream)
  queue.work(() => {
    throw new RangeError('no such address')
  })
  let last = await next(stream)
  const seen = [last]
  while (last.event !== 'done') {
    last = await next(stream)
    seen.push(last)
  }
  assert.ok(seen.slice(0, -1).every(({ event }) => event === 'state'))
  assert.deepEqual(
    [last.data.state, last.data.attempt, last.data.error],
    [...['dead', 2, { name: 'RangeError', message: 'no such address', code: 'HandlerFailed' }]],
  )
})

webTest('a job that is final already: done, and the end; to whoever comes back after it: 204', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  await pond.cancel(id)
  const handler = follow(pond)
  const stream = events(await handler(asked(id)))
  const { event, data } = await next(stream)
  assert.deepEqual([event, data.state], ['done', 'cancelled'])
  assert.equal((await stream.next()).done, true)
  const again = await handler(asked(id, { 'last-event-id': 'last' }))
  assert.deepEqual([again.status, again.body], [204, null])
})

webTest('a job that was requeued after its last event goes on', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  await pond.cancel(id)
  const handler = follow(pond)
  const end = await handler(asked(id, { 'last-event-id': 'last' }))
  assert.equal(end.status, 204)
  await queue.requeue([id])
  const again = await handler(asked(id, { 'last-event-id': 'last' }))
  assert.equal(again.status, 200)
  const stream = events(again)
  const { event, data } = await next(stream)
  assert.deepEqual([event, data.state], ['state', 'waiting'])
  await stream.return(undefined)
})

webTest('a middleware that compresses does not hold events back', async ({ pond, serve }) => {
  const { id } = await pond.queue('q').push(1)
  const app = express()
  app.use(compression())
  app.get('/jobs/:id', toNode(follow(pond)))
  app.get('/text', (_, response) => void response.type('text').send('x'.repeat(10_000)))
  const origin = await serve(() => new Response(), app)
  const headers = { ...EVENTS, 'accept-encoding': 'gzip' }
  assert.equal((await fetch(`${origin}/text`, { headers })).headers.get('content-encoding'), 'gzip')
  const response = await fetch(`${origin}/jobs/${id}`, { headers })
  assert.equal(response.headers.get('content-encoding'), null)
  const stream = events(response)
  assert.equal((await next(stream)).event, 'state')
  await pond.cancel(id)
  assert.equal((await next(stream)).event, 'done')
})

webTest('a job that is not kept: gone, and the end', async ({ pond }) => {
  const queue = pond.queue('q', { keep: { done: 0 } })
  const { id } = await queue.push(1)
  const stream = events(await follow(pond)(asked(id)))
  await next(stream)
  queue.work(() => 'gone')
  let last = await next(stream)
  while (last.event === 'state') last = await next(stream)
  assert.deepEqual([last.event, last.data, last.id], ['gone', { id }, 'last'])
  assert.equal((await stream.next()).done, true)
})

webTest('signs of life while nothing happens', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const stream = events(await follow(pond, { heartbeat: 10 })(asked(id)))
  const names = [await next(stream), await next(stream), await next(stream)].map(({ event }) => event)
  assert.deepEqual(names, ['state', ':', ':'])
  await stream.return(undefined)
})

webTest('signs of life come also where the job is looked at more often than that', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const stream = events(await follow(pond, { heartbeat: 700 })(asked(id)))
  assert.deepEqual([(await next(stream)).event, (await next(stream)).event], ['state', ':'])
  await stream.return(undefined)
})

webTest('a stream ends after its time, read or not', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const handler = follow(pond, { maxStream: 20, maxFollowers: 1 })
  const stream = events(await handler(asked(id)))
  await next(stream)
  assert.equal((await stream.next()).done, true)
  const [unread, refused] = await Promise.all([handler(asked(id)), handler(asked(id))])
  await isProblem(refused, 503)
  await until(async () => (await handler(asked(id))).status === 200)
  await unread.body?.cancel()
})

webTest('as many as may, and no more: 503; hanging up makes room', async ({ pond, serve }) => {
  const { id } = await pond.queue('q').push(1)
  const url = `${await serve(follow(pond, { maxFollowers: 2 }))}/jobs/${id}`
  const leaving = new AbortController()
  const streams = [
    events(await fetch(url, { headers: EVENTS, signal: leaving.signal })),
    events(await fetch(url, { headers: EVENTS })),
  ]
  for (const stream of streams) await next(stream)
  const third = await fetch(url, { headers: EVENTS })
  assert.ok(third.headers.has('retry-after'))
  await isProblem(third, 503)
  leaving.abort()
  await until(async () => {
    const response = await fetch(url, { headers: EVENTS })
    await response.body?.cancel()
    return response.status === 200
  })
})

webTest('all who follow a job share its looks, and nothing is asked when nobody does', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  let looks = 0
  let results = 0
  let listeners = 0
  const counted: ReturnType<typeof parts> = {
    ...parts(pond),
    job: (one) => {
      looks++
      return pond.job(one)
    },
    result: (one, options) => {
      results++
      return pond.result(one, options).finally(() => results--)
    },
    on: (name, listener) => {
      listeners++
      const off = pond.on(name, listener)
      return () => {
        listeners--
        off()
      }
    },
  }
  const handler = follow(counted)
  const streams = await Promise.all(Array.from({ length: 50 }, async () => events(await handler(asked(id)))))
  await Promise.all(streams.map(next))
  assert.equal(results, 1)
  const before = looks
  // Each round is one look: two of them at least.
  await until(() => looks >= before + 2)
  assert.ok(looks - before < 10, `${looks - before} looks in about two rounds`)
  await Promise.all(streams.map((stream) => stream.return(undefined)))
  await until(() => results === 0 && listeners === 0)
  const after = looks
  const { id: other } = await queue.push(2)
  await inState(pond, other, 'waiting')
  assert.equal(looks, after)
})

webTest('a reader that does not read holds nothing up, and gets the last state when it does', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1)
  const response = await follow(pond)(asked(id))
  const other = events(await follow(pond)(asked(id)))
  queue.work(async (_, ctx) => {
    for (let step = 0; step < 1000; step++) ctx.progress(step)
    return 'x'.repeat(100_000)
  })
  for (let last = await next(other); last.event !== 'done'; ) last = await next(other)
  const all: Event[] = []
  for await (const event of events(response)) all.push(event)
  assert.ok(all.length <= 2, JSON.stringify(all.map(({ event }) => event)))
  assert.equal(all.at(-1)?.event, 'done')
})

webTest('the signal of the request ends it', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const leaving = new AbortController()
  const handler = follow(pond, { maxFollowers: 1 })
  const stream = events(await handler(asked(id, {}, leaving.signal)))
  await next(stream)
  leaving.abort()
  assert.equal((await stream.next()).done, true)
  // Nor does it matter who lets go of it.
  await (await handler(asked(id))).body?.cancel()
  const gone = await handler(asked(id, {}, leaving.signal))
  assert.equal(await gone.text(), '')
  assert.equal((await handler(asked(id))).status, 200)
})

webTest('a store that fails for good ends it, and onError hears why; a closing pond just ends it', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const errors: unknown[] = []
  let trouble: Error | undefined
  const job = async (one: string) => {
    if (trouble) throw trouble
    return pond.job(one)
  }
  const failing = { ...parts(pond), job }
  const handler = follow(failing, { onError: (error) => errors.push(error) })
  const stream = events(await handler(asked(id)))
  await next(stream)
  trouble = new MillpondError('StoreCorrupt', 'damaged')
  assert.equal((await stream.next()).done, true)
  assert.deepEqual(errors, [trouble])

  const closing = await Millpond.open('memory:')
  const { id: other } = await closing.queue('q').push(1)
  const last = events(await follow(closing, { onError: () => assert.fail('heard of') })(asked(other)))
  await next(last)
  await closing.close()
  assert.equal((await last.next()).done, true)
})

webTest('a look is rendered once for all who follow the job, by streams and polls', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  const info = await pond.job(id)
  assert.ok(info)
  let rendered = 0
  let percent = 0
  // What each look finds; it counts how often it is written.
  const look = () => {
    const found = percent
    const progress = {
      get percent() {
        rendered++
        return found
      },
    }
    return { ...info, state: 'running' as const, progress }
  }
  const handler = follow({ ...parts(pond), job: async () => look() })
  const followers = 50
  const streams = await Promise.all(Array.from({ length: followers }, async () => events(await handler(asked(id)))))
  for (const stream of streams) await next(stream)
  const changes = streams.map((stream) => next(stream))
  const tag = (await handler(new Request(`http://localhost/jobs/${id}`))).headers.get('etag') ?? ''
  const headers = { 'if-none-match': tag, prefer: 'wait=60' }
  const polls = Array.from({ length: followers }, () =>
    handler(new Request(`http://localhost/jobs/${id}`, { headers })),
  )
  await new Promise(setImmediate)
  rendered = 0
  percent = 50
  for (const change of changes) assert.deepEqual((await change).data.progress, { percent: 50 })
  for (const poll of polls) assert.deepEqual((await bodyOf(await poll)).progress, { percent: 50 })
  assert.ok(rendered <= 10, `${rendered} renderings`)
  for (const stream of streams) await stream.return(undefined)
})
