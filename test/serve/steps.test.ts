/** Signals, and what steps keep, over HTTP. */
import assert from 'node:assert/strict'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { isProblem, onStores } from './client.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

onStores('steps over HTTP', {
  'a parked job is signalled, shown and explained': async ({ open, url }) => {
    // There each process has a store of its own.
    if (url === 'memory:') return
    const client = await open()
    const pond = await Millpond.open(url)
    const worker = pond.queue('q').work(async (_, ctx) => {
      const plan = await ctx.step('plan', () => 7)
      return [plan, await ctx.waitFor('go', { ask: 'May it?' }), await ctx.waitFor('go')]
    })
    const { id } = await pond.queue('q').push(1, { key: 'k' })
    await until(async () => (await pond.job(id))?.waits !== undefined)
    const { body: why } = await client.get(`/v1/jobs/${id}/explain`)
    assert.match(String(why.text), /it waits for the signal go/)
    const { body: shown } = await client.get(`/v1/jobs/${id}/steps`)
    assert.ok(Array.isArray(shown.steps))
    assert.deepEqual(
      shown.steps.map(({ name, kind, state, result, ask }) => [name, kind, state, result, ask]),
      [
        ['plan', 'step', 'done', 7, undefined],
        ['go', 'wait', 'waiting', undefined, 'May it?'],
      ],
    )
    assert.deepEqual((await client.post(`/v1/jobs/${id}/signals/go`, { data: { by: 'ada' } })).body, { id })
    assert.deepEqual((await client.post('/v1/queues/q/signals', { key: 'k', name: 'go' })).body, { id })
    assert.deepEqual(await pond.result(id), [7, { by: 'ada' }, null])
    isProblem(await client.post(`/v1/jobs/${id}/signals/go`, {}), 409, 'JobEnded')
    isProblem(await client.post(`/v1/jobs/${UNKNOWN}/signals/go`, {}), 404, 'JobUnknown')
    isProblem(await client.post('/v1/queues/q/signals', { key: 'none', name: 'go' }), 404, 'JobUnknown')
    await worker.close()
    await pond.close()
  },
})
