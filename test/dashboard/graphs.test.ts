/** A job among those that it waits for and those that wait for it. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after as undo } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { ALL, type Answer, startDashboard } from './fixture.ts'

async function graphOf(t: TestContext, parents: number) {
  const pond = await Millpond.open('memory:')
  undo(t, () => pond.close({ timeout: 100 }))
  const [parts, secret, whole] = [pond.queue('parts'), pond.queue('secret'), pond.queue('whole')]
  const ids = (await parts.pushMany([...Array(parents).keys()])).map(({ id }) => id)
  const { id: hidden } = await secret.push(1)
  const { id } = await whole.push('all', { after: [...ids, hidden] })
  const { id: child } = await whole.push('then', { after: [id] })
  return { pond, id, child, ids, hidden }
}

test('a job has its relatives, but nothing of queues that the caller may not see', async (t) => {
  const { pond, id, child, ids, hidden } = await graphOf(t, 2)
  let viewer: string[] = ['*']
  const { ask } = await startDashboard(t, pond, { rights: () => ({ ...ALL, operator: [], payloads: [], viewer }) })
  const part = (one: string) => ({ id: one, queue: 'parts', state: 'waiting' })
  const shown = async (of: string) => (await ask('job', { id: of })).body
  const all = await shown(id)
  assert.deepEqual(all.relatives.parents.shown, [...ids.map(part), { id: hidden, queue: 'secret', state: 'waiting' }])
  assert.deepEqual(all.relatives.children, { shown: [{ id: child, queue: 'whole', state: 'blocked' }], count: 1 })
  assert.match(all.why, /3 jobs have not ended: .*\(secret, waiting\)/)
  viewer = ['whole', 'parts']
  const some = await shown(id)
  assert.deepEqual(some.relatives.parents, { shown: ids.map(part), count: 3 })
  assert.equal(some.why, `Job ${id} waits for other jobs, of which you may not see all.`)
  assert.equal((await shown(ids[0] ?? '')).relatives.children.count, 1)
  // The last of many parents is the one that is not done: it comes first.
  const worker = pond.queue('parts').work(() => 'done', { concurrency: 1 })
  await until(async () => (await pond.queue('parts').stats()).counts.done === 2, 'both parts to be done')
  await worker.close()
  viewer = ['*']
  const states = async () => (await shown(id)).relatives.parents.shown.map(({ state }: Answer) => state)
  assert.deepEqual(await states(), ['waiting', 'done', 'done'])
  const { id: alone } = await pond.queue('whole').push('alone')
  assert.equal((await shown(alone)).relatives, null)
})
