/** Requests that are sent twice. */
import assert from 'node:assert/strict'
import { Packr } from 'msgpackr'
import { newId } from '../../src/values/jobs/ids.ts'
import { accept } from '../../src/web/index.ts'
import { inState, refused } from '../api/suite.ts'
import { acceptedId, bodyOf, isProblem, posted, raw, webTest } from './serving.ts'

/** Of a client that says who it is, as one with a key must. */
const keyed = (key: string, headers: Record<string, string> = {}) => ({
  'idempotency-key': key,
  authorization: 'Bearer ada',
  ...headers,
})
const pack = (value: unknown) => new Uint8Array(new Packr({ useRecords: false }).pack(value))

webTest('Idempotency-Key: one job, in flight, live and finished', async ({ pond }) => {
  const queue = pond.queue<object>('q')
  const handler = accept(queue)
  const send = (data: unknown, key: string, headers = {}) => handler(posted(data, keyed(key, headers)))
  const both = await Promise.all([send({ a: 1, b: [2] }, '"k-1"'), send({ b: [2], a: 1 }, 'k-1')])
  const [id, again] = await Promise.all(both.map(acceptedId))
  assert.equal(again, id)
  assert.match(String(id), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  queue.work(() => 'sent')
  await inState(pond, String(id), 'done')
  assert.deepEqual(await bodyOf(await send({ a: 1, b: [2] }, 'k-1')), { id, state: 'done' })
  const waited = await send({ a: 1, b: [2] }, 'k-1', { prefer: 'wait=10' })
  assert.deepEqual([waited.status, (await bodyOf(waited)).result], [200, 'sent'])
  assert.notEqual(await acceptedId(await send({ a: 1, b: [2] }, 'k-2')), id)
})

webTest('Idempotency-Key with another payload: 422, nothing stored', async ({ pond }) => {
  const queue = pond.queue('q')
  const send = (handler: (request: Request) => Promise<Response>, data: unknown) => handler(posted(data, keyed('k')))
  const id = await acceptedId(await send(accept(queue), { a: 1 }))
  for (const other of [{ a: 2 }, { a: '1' }, { a: 1, b: null }, [], null]) {
    await isProblem(await send(accept(queue), other), 422, 'InvalidOption')
  }
  assert.equal((await queue.stats()).counts.waiting, 1)
  assert.equal(await acceptedId(await send(accept(queue, { idempotency: { compare: false } }), 2)), id)
  assert.deepEqual((await pond.job(id))?.data, { a: 1 })
})

webTest(
  "Idempotency-Key beside a job's key: a job that has the key is that job, whatever its payload",
  async ({ pond }) => {
    const handler = accept(pond.queue('q'), { push: () => ({ key: 'welcome:42' }), existing: 'shared' })
    const id = await acceptedId(await handler(posted(1, keyed('a'))))
    assert.equal(await acceptedId(await handler(posted(2, keyed('b')))), id)
    await isProblem(await handler(posted(2, keyed('a'))), 422, 'InvalidOption')
  },
)

webTest('Idempotency-Key of bytes is compared by its bytes', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  const send = (value: unknown) => handler(raw(pack(value), 'application/msgpack', keyed('k')))
  const id = await acceptedId(await send(Buffer.from([1, 2])))
  assert.equal(await acceptedId(await send(Buffer.from([1, 2]))), id)
  await isProblem(await send(Buffer.from([1, 3])), 422, 'InvalidOption')
})

webTest("Idempotency-Keys of one caller are not another's, nor another queue's", async ({ pond }) => {
  const ids = new Set<string>()
  const send = async (
    queue: string,
    headers: Record<string, string>,
    scope?: (request: Request) => string | undefined,
  ) => {
    const options = scope === undefined ? {} : { idempotency: { scope } }
    const handler = accept(pond.queue(queue), options)
    const id = await acceptedId(await handler(posted(1, { 'idempotency-key': 'k', ...headers })))
    ids.add(id)
    return id
  }
  const tenant = (request: Request) => request.headers.get('x-tenant') ?? undefined
  await send('b', { authorization: 'Bearer ada' })
  await send('a', { authorization: 'Bearer ada' })
  await send('a', { authorization: 'Bearer bob' })
  const first = await send('a', { 'x-tenant': 'x', authorization: 'Bearer 1' }, tenant)
  const second = await send('a', { 'x-tenant': 'x', authorization: 'Bearer 2' }, tenant)
  assert.equal(first, second)
  await send('a', { 'x-tenant': 'y' }, tenant)
  assert.equal(ids.size, 5)
})

webTest('an id of its own counts before an Idempotency-Key, and pushes of it store nothing', async ({ pond }) => {
  const queue = pond.queue('q')
  const ids = [newId(), newId()]
  let index = 0
  const handler = accept(queue, { push: () => ({ id: ids[index] ?? '' }), existing: 'shared' })
  const send = (data: unknown, key: string) => handler(posted(data, keyed(key)))
  assert.equal(await acceptedId(await send(1, 'a')), ids[0])
  // As a push of a known id, whatever it holds; the key says nothing.
  assert.equal(await acceptedId(await send(2, 'a')), ids[0])
  assert.equal(await acceptedId(await send(2, 'b')), ids[0])
  index = 1
  assert.equal(await acceptedId(await send(3, 'a')), ids[1])
  await isProblem(await send(3, 'a,b'), 400, 'InvalidOption')
  assert.deepEqual(
    (await queue.jobs('waiting')).map(({ id, data }) => [id, data]),
    [
      [ids[0], 1],
      [ids[1], 3],
    ],
  )
})

webTest('an Idempotency-Key that is none: 400', async ({ pond }) => {
  const handler = accept(pond.queue('q'))
  for (const key of [
    '',
    '""',
    'a b',
    '"a',
    'a, b',
    '"a", "b"',
    'ä',
    'x'.repeat(256),
    `"${'x'.repeat(256)}"`,
    '"\\x"',
  ]) {
    await isProblem(await handler(posted(1, keyed(key))), 400, 'InvalidOption')
  }
  for (const key of [
    'x'.repeat(255),
    '"with space, and comma"',
    '"\\"quoted\\""',
    '8e03978e-40d5-43dd-bc93-6894a57f9324',
  ]) {
    await acceptedId(await handler(posted(1, keyed(key))))
  }
})

webTest('a queue that is full knows a repeated key all the same', async ({ pond }) => {
  const handler = accept(pond.queue('q', { capacity: 1 }))
  const send = (key: string) => handler(posted(1, keyed(key)))
  const id = await acceptedId(await send('a'))
  await isProblem(await send('b'), 503, 'QueueFull')
  assert.equal(await acceptedId(await send('a')), id)
  await refused(pond.queue('q').push(1), 'QueueFull')
})
