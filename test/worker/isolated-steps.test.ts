/** Steps of isolated handlers: their records are the worker's business, and outlive the handler's process. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

test('steps, waits and a crash in between', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close())
  pond.on('failed', () => {})
  const queue = pond.queue<string>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
  queue.work(new URL('./modules/steps.ts', import.meta.url), { isolate: {}, concurrency: 2 })
  const { id } = await queue.push('crashes')
  await until(async () => (await pond.job(id))?.waits !== undefined, 'the job is parked')
  const job = await pond.job(id)
  assert.deepEqual([job?.attempt, job?.error?.code], [1, 'HandlerCrashed'])
  await pond.signal(id, 'go', { by: 'ada' })
  const result = await pond.result<Record<string, unknown>>(id)
  assert.deepEqual(result, {
    first: job?.steps?.[0]?.result,
    signal: { by: 'ada' },
    second: { of: 'crashes' },
    refused: 'NotSupported',
  })
})
