/** How many jobs a search finds, beside the first page of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted as estimated } from '../../src/dashboard/count.ts'
import { Millpond } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { LARGEST_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import { after } from '../support/cleaning.ts'
import { meddled } from '../support/meddled.ts'
import { ALL, startDashboard } from './fixture.ts'

test('few are counted, many are more than 1,000, and where it takes long it is an estimate', async (t) => {
  const step = { looked: 0, matched: 0, changed: 0, sample: [], next: null, now: 7 }
  let steps: { looked: number; matched: number; next: string }[] = []
  const asked: unknown[] = []
  const store = meddled(await openStore('memory:', {}), {
    bulk: async (input, next) => {
      asked.push(input)
      const told = steps.shift()
      return told === undefined ? next(input) : { ...step, ...told }
    },
  })
  const pond = new Millpond(store, LARGEST_PAYLOAD)
  after(t, () => pond.close({ timeout: 100 }))
  const queue = pond.queue<{ n: number }>('orders')
  const data = Array.from({ length: 30 }, (_, n) => ({ n }))
  await queue.pushMany(data, { each: ({ n }) => ({ group: n % 3 === 0 ? 'third' : 'other' }) })
  const { ask } = await startDashboard(t, pond)
  const counted = async (search: object) => (await ask('count', { queue: 'orders', state: 'waiting', ...search })).body
  assert.deepEqual(await counted({ group: 'third' }), { kind: 'exact', count: 10, looked: 30, total: 30 })
  assert.deepEqual(await counted({ group: 'none' }), { kind: 'exact', count: 0, looked: 30, total: 30 })
  assert.deepEqual((await queue.stats()).counts.waiting, 30, 'none was changed')
  asked.length = 0
  assert.deepEqual(await counted({}), { kind: 'exact', count: 30, looked: 30, total: 30 })
  assert.deepEqual(asked, [], 'the counts of the store know it')
  steps = [
    { looked: 20, matched: 600, next: 'a' },
    { looked: 20, matched: 600, next: 'b' },
  ]
  assert.deepEqual(await counted({ group: 'third' }), { kind: 'more', count: 1000, looked: 40, total: 30 })
  assert.deepEqual(
    asked.map((input) => ({ ...(input as object), filter: undefined })),
    [{}, { after: 'a', until: 7 }].map((at) => ({
      ...{ queue: 'orders', state: 'waiting', change: { kind: 'remove' }, limit: 0, filter: undefined },
      ...at,
    })),
  )
  const query = { queue: 'orders', state: 'waiting' as const, filter: { group: 'third' } }
  steps = [{ looked: 20, matched: 3, next: 'a' }]
  assert.deepEqual(await estimated(store, query, 300, 0), { kind: 'estimate', count: 45, looked: 20, total: 300 })
  steps = [{ looked: 20, matched: 3, next: 'a' }]
  // The counts of some stores lag behind.
  assert.equal((await estimated(store, query, 0, 0)).count, 3)
})

test('whoever may not see payloads does not learn by counting', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  await pond.queue('orders').push({ card: 1 })
  const { ask } = await startDashboard(t, pond, { rights: () => ({ ...ALL, operator: false, payloads: false }) })
  const of = (search: object) => ask('count', { queue: 'orders', state: 'waiting', ...search })
  assert.equal((await of({ group: '' })).body.count, 1)
  assert.equal((await of({ text: 'card' })).status, 403)
  assert.equal((await ask('count', { queue: 'unknown', state: 'waiting' })).status, 404)
})
