/** Jobs that cannot be shown, and times that no Date can name: one request may come to nothing, but not the process. */
import assert from 'node:assert/strict'
import type { JobInfo, Millpond } from '../../src/index.ts'
import { follow } from '../../src/web/index.ts'
import { inState } from '../api/suite.ts'
import { bodyOf, webTest } from './serving.ts'

const asked = (id: string, init?: RequestInit) => new Request(`http://localhost/jobs/${id}`, init)
const EVENTS = { accept: 'text/event-stream' }

/** The pond, with other words about its jobs. */
const telling = (pond: Millpond, job: (id: string) => Promise<JobInfo | undefined>) => ({
  job,
  result: pond.result.bind(pond),
  cancel: pond.cancel.bind(pond),
  queue: pond.queue.bind(pond),
  on: pond.on.bind(pond),
})

webTest('a job at the end of time is told of without an expected start', async ({ pond }) => {
  const queue = pond.queue('q')
  const { id } = await queue.push(1, { runAt: 8.64e15 })
  const worker = queue.work(() => {})
  const other = await queue.push(2)
  await inState(pond, other.id, 'done')
  await worker.close()
  const waiting = await queue.push(3)
  const handler = follow(pond)
  const { expectedStart } = await bodyOf(await handler(asked(waiting.id)))
  assert.equal(typeof expectedStart, 'string', 'there are figures to tell it from')
  const body = await bodyOf(await handler(asked(id)))
  assert.deepEqual([body.dueAt, body.expectedStart], ['9999-12-31T23:59:59.999Z', undefined])
  const stream = (await handler(asked(id, { headers: EVENTS }))).body?.getReader()
  const { value } = (await stream?.read()) ?? {}
  assert.match(new TextDecoder().decode(value), /^event: state\ndata: \{/)
  await stream?.cancel()
})

webTest('a stream that cannot go on fails, frees its place, and may be let go of in any way', async ({ pond }) => {
  const { id } = await pond.queue('q').push(1)
  let broken = true
  const job = async (one: string) => {
    const found = await pond.job(one)
    return found && broken ? { ...found, dueAt: new Date(Number.NaN) } : found
  }
  const errors: unknown[] = []
  const handler = follow(telling(pond, job), { maxFollowers: 1, onError: (error) => errors.push(error) })
  const leaving = new AbortController()
  const response = await handler(asked(id, { headers: EVENTS, signal: leaving.signal }))
  await assert.rejects(response.text(), { name: 'RangeError' })
  assert.deepEqual(
    errors.map((error) => error instanceof RangeError),
    [true],
  )
  // What a listener throws is nobody's to catch.
  leaving.abort()
  broken = false
  const next = await handler(asked(id, { headers: EVENTS }))
  assert.equal(next.status, 200)
  await next.body?.cancel()
})
