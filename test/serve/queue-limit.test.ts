/** How many queues clients may make, and what makes one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../../src/serve/index.ts'
import { QueueLimit } from '../../src/serve/queue-limit.ts'
import { openStore } from '../../src/stores/open.ts'
import { newJob } from '../support/jobs.ts'
import { meddled } from '../support/meddled.ts'
import { until } from '../support/until.ts'
import { coded } from '../unit/suite.ts'
import { Client, isProblem } from './client.ts'

async function served(maxQueues: number, check: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client(await serve('memory:', { maxQueues }))
  try {
    await check(client)
  } finally {
    client.served.stop()
    await client.served.close()
  }
}

const names = async (client: Client): Promise<unknown[]> => {
  const { queues } = (await client.get('/v1/queues')).body
  assert.ok(Array.isArray(queues))
  return queues.map(({ queue }) => queue).sort()
}

test('beyond the limit a new queue is refused with TooManyQueues; those that are there go on', () =>
  served(3, async (client) => {
    await client.push('a', 1)
    assert.equal((await client.post('/v1/queues/b/batches', { jobs: [{ data: 1 }] })).status, 202)
    assert.equal((await client.ask('PATCH', '/v1/queues/c', { paused: true })).status, 200)
    const refused = [
      await client.post('/v1/queues/d/jobs', { data: 1 }),
      await client.post('/v1/queues/e/batches', { jobs: [{ data: 1 }] }),
      await client.ask('PATCH', '/v1/queues/f', { capacity: 5 }),
      await client.ask('PATCH', '/v1/queues/g/groups', { group: 'a', running: 1 }),
    ]
    for (const answer of refused) {
      isProblem(answer, 503, 'TooManyQueues')
      assert.ok(Number(answer.headers.get('retry-after')) >= 1)
    }
    assert.deepEqual(await names(client), ['a', 'b', 'c'])
    await client.push('b', 2)
    assert.equal((await client.ask('PATCH', '/v1/queues/a', { capacity: 5 })).status, 200)
  }))

test('a change without a setting, a look or a claim makes no queue, also where none may be made', () =>
  served(0, async (client) => {
    isProblem(await client.ask('PATCH', '/v1/queues/q', {}), 404, 'QueueUnknown')
    for (const path of ['/v1/queues/q', '/v1/queues/q/jobs?state=dead', '/v1/queues/q/groups'])
      isProblem(await client.get(path), 404, 'QueueUnknown')
    isProblem(await client.post('/v1/queues/q/requeue'), 404, 'QueueUnknown')
    assert.deepEqual(await client.claim('q'), [])
    assert.deepEqual(await names(client), [])
    isProblem(await client.post('/v1/queues/q/jobs', { data: 1 }), 503, 'TooManyQueues')
    isProblem(await client.post(`/v1/queues/${encodeURIComponent('no name')}/jobs`, { data: 1 }), 400, 'InvalidName')
  }))

test('what came to nothing takes no place for long', () =>
  served(1, async (client) => {
    isProblem(await client.post('/v1/queues/a/jobs', { data: 1, key: '\ud800' }), 400, 'InvalidName')
    await until(async () => (await client.post('/v1/queues/b/jobs', { data: 1 })).status === 202)
    assert.deepEqual(await names(client), ['b'])
  }))

test('a name is asked for once, until queues have gone', async () => {
  const asked: unknown[] = []
  const store = meddled(await openStore('memory:', {}), {
    stats(input, next) {
      asked.push(input.queue)
      return next(input)
    },
  })
  const make = (queue: string) => store.operations.push({ jobs: [newJob({ queue })] })
  await make('old')
  const limit = new QueueLimit(store, 2)
  limit.swept(1)
  for (const queue of ['old', 'new', 'old', 'new']) await limit.admit(queue)
  assert.deepEqual(asked, ['old', 'new'])
  await assert.rejects(limit.admit('third'), coded('TooManyQueues'))
  await make('new')
  limit.swept(2)
  await assert.rejects(limit.admit('third'), coded('TooManyQueues'))
  await limit.admit('new')
  assert.deepEqual(asked, ['old', 'new', 'third', 'third'])
  await store.operations.remove({ queue: 'old', limit: 10 })
  limit.swept(1)
  await limit.admit('third')
  await assert.rejects(limit.admit('old'), coded('TooManyQueues'))
  await limit.admit('new')
})
