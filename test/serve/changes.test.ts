/** What people change over HTTP: jobs, queues; and what they look at. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { isProblem, onStores } from './client.ts'

onStores('changes', {
  'a job is changed, then removed': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1)
    const changed = await client.ask('PATCH', `/v1/jobs/${id}`, { priority: 7, delay: 60_000 })
    assert.deepEqual([changed.status, changed.body], [200, { id, outcome: 'updated' }])
    assert.equal(await client.state(id), 'scheduled')
    isProblem(await client.ask('DELETE', `/v1/queues/other/jobs/${id}`), 404, 'JobUnknown')
    const removed = await client.ask('DELETE', `/v1/queues/q/jobs/${id}`)
    assert.deepEqual([removed.status, removed.body], [200, { id, outcome: 'removed' }])
    isProblem(await client.ask('PATCH', `/v1/jobs/${id}`, { priority: 1 }), 404, 'JobUnknown')
  },
  'a running job is not changed': async ({ open }) => {
    const client = await open()
    const id = await client.push('q', 1)
    await client.claim('q')
    isProblem(await client.ask('PATCH', `/v1/jobs/${id}`, { priority: 1 }), 409, 'InvalidOption')
  },
  'filters, totals, settings, workers, and the end of a queue': async ({ open }) => {
    const client = await open()
    await client.push('q', 1, { group: 'a' })
    await client.push('q', 2, { key: 'k' })
    const listed = (await client.get('/v1/queues/q/jobs?state=waiting&key=k')).body
    assert.ok(Array.isArray(listed.jobs))
    assert.deepEqual([listed.jobs.length, listed.jobs[0].data], [1, 2])
    const places = await client.push('q', { user: { id: 7 } })
    const placed = (await client.get('/v1/queues/q/jobs?state=waiting&data=user.id%3D7')).body
    assert.ok(Array.isArray(placed.jobs))
    assert.deepEqual(
      placed.jobs.map(({ id }) => id),
      [places],
    )
    isProblem(await client.get('/v1/queues/q/jobs?state=waiting&data=user'), 422, 'InvalidOption')
    isProblem(await client.get('/v1/queues/q/jobs?state=waiting&data=a..b%3D1'), 422, 'InvalidOption')
    const filter = { action: 'remove', state: 'waiting', data: 'user.id=7' }
    assert.equal((await client.post('/v1/queues/q/changes', filter)).body.changed, 1)
    const { totals } = (await client.get('/v1/queues/q')).body
    assert.equal(Object(totals).pushed, 3)
    const { settings } = (await client.get('/v1/queues/q/settings')).body
    assert.ok(Array.isArray(settings) && settings.every(({ by }) => by === 'default'))
    await client.claim('q', { worker: 'w1' })
    await until(async () => Object((await client.get('/v1/workers?queue=q')).body.workers).length > 0)
    const gone = await client.ask('DELETE', '/v1/queues/q')
    assert.deepEqual([gone.status, gone.body], [200, { removed: 2, more: false }])
    isProblem(await client.get('/v1/queues/q'), 404, 'QueueUnknown')
  },
})
