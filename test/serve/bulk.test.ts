/** Changes of all jobs that match, over HTTP. */
import assert from 'node:assert/strict'
import { type Client, isProblem, onStores } from './client.ts'

const change = (client: Client, body: unknown, queue = 'q') => client.post(`/v1/queues/${queue}/changes`, body)

/** So many dead jobs, every third with TIMEOUT in its error. */
async function died(client: Client, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, (_, data) => ({ data, group: data % 2 ? 'odd' : 'even' }))
  assert.equal((await client.post('/v1/queues/q/batches', { jobs })).status, 202)
  const claims = await client.claim('q', { limit: count })
  const fail = claims.map(({ id, fence, data }) => ({
    ...{ id, fence, retry: false },
    error: { name: 'Error', message: Number(data) % 3 === 0 ? 'connect TIMEOUT' : 'no' },
  }))
  assert.equal((await client.post('/v1/queues/q/settle', { fail })).status, 200)
}

onStores('changes in bulk', {
  'a dry run, then page by page, exactly those': async ({ open }) => {
    const client = await open()
    await died(client, 30)
    const filter = { action: 'requeue', errorText: 'TIMEOUT' }
    const { status, body } = await change(client, { ...filter, dryRun: true })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.count, body.isEstimate], [10, false])
    assert.ok(Array.isArray(body.sample) && body.sample.length === 10)
    assert.ok(body.sample.every(({ state, error }) => state === 'dead' && error.message === 'connect TIMEOUT'))
    let after = body.from
    const changed: unknown[] = []
    while (after !== undefined) {
      const page = await change(client, { ...filter, limit: 4, after })
      assert.equal(page.status, 200, JSON.stringify(page.body))
      changed.push(page.body.changed)
      after = page.body.next
    }
    assert.deepEqual(changed, [4, 4, 2])
    const again = await client.claim('q', { limit: 30 })
    assert.ok(again.length === 10 && again.every(({ data }) => Number(data) % 3 === 0))
    assert.deepEqual((await change(client, filter)).body, { looked: 20, matched: 0, changed: 0 })
    assert.equal((await change(client, { action: 'cancel' })).body.changed, 10)
    assert.equal((await change(client, { action: 'remove', state: 'dead', group: 'odd' })).body.changed, 10)
  },
  'due times and priorities': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1, { delay: 60_000 })
    await client.push('q', 2, { delay: 60_000, key: 'other' })
    const update = { action: 'update', state: 'scheduled', priority: 9, runAt: '2030-01-01T00:00:00Z' }
    assert.equal((await change(client, { ...update, key: 'other' })).body.changed, 1)
    assert.equal((await change(client, update)).body.changed, 1)
    assert.equal((await change(client, update)).body.matched, 0)
    assert.equal((await change(client, { action: 'promote' })).body.changed, 2)
    assert.equal(await client.state(id), 'waiting')
  },
  'bad requests': async ({ open }) => {
    const client = await open()
    isProblem(await change(client, { action: 'requeue' }, 'none'), 404, 'QueueUnknown')
    isProblem(await change(client, { action: 'requeue', dryRun: true }, 'none'), 404, 'QueueUnknown')
    await client.push('q', 1)
    assert.deepEqual((await change(client, { action: 'requeue' })).body, { looked: 0, matched: 0, changed: 0 })
    for (const body of [
      {},
      { action: 'delete' },
      { action: 'cancel', ids: ['a'] },
      { action: 'cancel', state: 'lost' },
      { action: 'cancel', errorText: '' },
      { action: 'cancel', limit: 0 },
      { action: 'cancel', after: 'waiting.1.2' },
      { action: 'update', state: 'waiting', delay: 1, runAt: 1 },
    ]) {
      isProblem(await change(client, body), 422, 'InvalidOption')
    }
    for (const body of [
      { action: 'remove' },
      { action: 'requeue', state: 'waiting' },
      { action: 'update', state: 'waiting' },
      { action: 'cancel', priority: 1 },
      { action: 'cancel', after: '5~dead' },
    ]) {
      isProblem(await change(client, body), 400, 'InvalidOption')
    }
  },
})
