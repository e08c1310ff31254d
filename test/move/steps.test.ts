/** The steps of a job, its signals and what it waits for go with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import { stores } from '../conformance/stores.ts'
import { claim, first } from '../conformance/suite.ts'
import { newJob } from '../support/jobs.ts'

const kinds = stores.filter(({ name, skip }) => ['memory', 'sqlite', 'redis', 'postgres'].includes(name) && !skip)

for (const [at, from] of kinds.entries()) {
  const to = kinds[(at + 1) % kinds.length] ?? from
  test(`a parked job goes from ${from.name} to ${to.name}`, async (t) => {
    const source = await from.open()
    const target = await to.open()
    t.after(async () => {
      await source.dispose()
      await target.dispose()
    })
    const { operations } = source.store
    const [parked, running] = [newJob({ queue: 'q' }), newJob({ queue: 'q' })]
    await operations.push({ jobs: [parked, running] })
    const { jobs } = await claim(source.store, { queue: 'q', limit: 1 })
    const { id, fence } = first(jobs)
    const entries = [{ name: '=one', meta: '{"kind":"step"}', body: { encoding: 'json' as const, body: '1' } }]
    assert.deepEqual(await operations.journal({ queue: 'q', items: [{ id, fence, entries }] }), ['ok'])
    await operations.signal({ items: [{ id, name: '!go/1', meta: '{}', body: null }] })
    const park = { until: null, signals: 1, after: [], entries: [], reason: '{"waits":[]}' }
    assert.deepEqual(await operations.release({ queue: 'q', items: [{ id, fence, park }] }), ['ok'])

    await move(source.store, target.store)
    const record = first(await target.store.operations.find({ ids: [id] }))
    assert.deepEqual([record?.state, record?.journal, record?.parked], ['scheduled', 2, park.reason])
    const [page] = await target.store.operations.entries({ items: [{ id, after: 0 }] })
    assert.deepEqual(
      page?.entries.map(({ name, meta, body }) => [name, meta, body?.body]),
      [
        ['=one', '{"kind":"step"}', '1'],
        ['!go/1', '{}', undefined],
      ],
    )
  })
}
