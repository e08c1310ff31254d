/** Handlers of batches in a process of their own: each job has its own end, as in the worker's process. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Millpond, type Queue } from '../../src/index.ts'
import { inState } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { moduleOf } from './fixture.ts'
import type { Part } from './modules/batch.ts'

async function batches(
  t: TestContext,
): Promise<{ pond: Millpond; queue: Queue<Part>; ended(parts: Part[]): Promise<unknown[]> }> {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  pond.on('dead', () => {})
  pond.on('failed', () => {})
  const queue = pond.queue<Part>('q', { retry: { attempts: 1 } })
  const start = () =>
    queue.work(moduleOf('batch'), { isolate: { memory: '512MB' }, batch: { max: 10 }, concurrency: 1 })
  let isStarted = false
  return {
    pond,
    queue,
    /** Pushes one batch. @returns of each job its result, or the code of its error */
    async ended(parts) {
      const pushed = await queue.pushMany(parts)
      if (!isStarted) start()
      isStarted = true
      const ends = pushed.map(async ({ id }) => {
        await until(async () => ['done', 'dead', 'scheduled', 'cancelled'].includes((await pond.job(id))?.state ?? ''))
        const job = await pond.job(id)
        return job?.error === null
          ? (job.result ?? job.state)
          : `${job?.state} ${job?.error.code}: ${job?.error.message}`
      })
      return Promise.all(ends)
    },
  }
}

test('each job has its own parents', { timeout: 60_000 }, async (t) => {
  const { pond, queue, ended } = await batches(t)
  const parents = [await queue.push({ do: 'double', value: 1 }), await queue.push({ do: 'double', value: 2 })]
  const children = parents.map(({ id }) => queue.push({ do: 'parents' }, { after: [id] }))
  const ids = (await Promise.all(children)).map(({ id }) => id)
  await ended([])
  assert.deepEqual(await Promise.all(ids.map((id) => pond.result(id))), [[2], [4]])
})

test('each job has its answer', { timeout: 60_000 }, async (t) => {
  const { pond, queue, ended } = await batches(t)
  const again = await queue.push({ do: 'retry' }, { attempts: 2 })
  const results = await ended([
    { do: 'double', value: 2 },
    { do: 'error' },
    { do: 'give up' },
    { do: 'double', value: 3n },
  ])
  assert.deepEqual(results, [4, 'dead HandlerFailed: no', 'dead GaveUp: never', 3n])
  const { state, error } = (await pond.job(again.id)) ?? {}
  assert.deepEqual([state, error?.message], ['scheduled', 'later'])
})

test('a batch that throws, or answers with something else, fails for all its jobs', { timeout: 60_000 }, async (t) => {
  const { ended } = await batches(t)
  const all = (results: unknown[]) => new Set(results).size === 1 && String(results[0])
  assert.match(all(await ended([{ do: 'double', value: 1 }, { do: 'throw' }])) || '', /HandlerFailed: the whole batch/)
  assert.match(all(await ended([{ do: 'other' }, { do: 'double', value: 1 }])) || '', /BatchMismatch: .* an array of 0/)
  assert.match(
    all(await ended([{ do: 'tx' }, { do: 'double', value: 1 }])) || '',
    /NotSupported: ctx\.tx does not reach/,
  )
})

test('a process that ends fails the jobs of its batch, and the next batch is done', { timeout: 60_000 }, async (t) => {
  const { ended } = await batches(t)
  const results = await ended([{ do: 'double', value: 1 }, { do: 'exit' }])
  for (const result of results) assert.match(String(result), /^dead HandlerCrashed: .* exit code 5/)
  assert.deepEqual(await ended([{ do: 'double', value: 4 }]), [8])
})

test('each job reports and is cancelled by itself', { timeout: 60_000 }, async (t) => {
  const { pond, queue, ended } = await batches(t)
  const file = join(scratch(t), 'told')
  const [told, obeys] = await queue.pushMany([
    { do: 'progress', value: 'half' },
    { do: 'obey', value: file },
  ])
  assert.ok(told && obeys)
  const others = ended([{ do: 'double', value: 5 }])
  await until(async () => (await pond.job(told.id))?.progress === 'half', 'the report to be seen')
  await pond.cancel(obeys.id)
  assert.deepEqual(await others, [10])
  await inState(pond, told.id, 'done')
  assert.equal(readFileSync(file, 'utf8'), 'JobCancelled, whole false\n')
})
