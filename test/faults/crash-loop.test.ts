/** Jobs that kill whatever process runs them: they end up dead with the reason, and the others get done. */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, countsOf, start } from './harness.ts'
import type { Poison, PoisonConfig } from './roles/poison.ts'

const QUEUE = 'jobs'
const ATTEMPTS = 3

async function run(t: TestContext, poison: Poison): Promise<void> {
  const folder = scratch(t)
  const url = `sqlite:${join(folder, 'app.db')}`
  const pond = await Millpond.open(url)
  after(t, () => pond.close())
  const jobs = pond.queue<Poison>(QUEUE)
  const good = (count: number) => jobs.pushMany(Array.from({ length: count }, () => 'none' as const))
  const before = await good(20)
  const { id } = await jobs.push(poison, { attempts: ATTEMPTS })
  const others = [...before, ...(await good(20))]

  const config: PoisonConfig = { url, queue: QUEUE }
  let worker: Child = start(t, 'poison', config, { cwd: folder })
  let deaths = 0
  await until(async () => {
    if (!worker.alive) {
      deaths++
      worker = start(t, 'poison', config, { cwd: folder })
    }
    const [{ counts } = { counts: undefined }] = await pond.stats()
    return counts?.dead === 1 && counts.done === others.length
  }, 'the poisonous job is dead, the others are done')

  const job = await pond.job(id)
  assert.equal(job?.state, 'dead')
  assert.equal(job.attempt, ATTEMPTS)
  assert.equal(job.error?.code, 'LeaseLost')
  // It killed a process each time it was run, and no more often.
  assert.equal(deaths, ATTEMPTS)
  assert.ok(worker.alive)
  await assert.rejects(pond.result(id), (error) => isMillpondError(error, 'JobFailed'))
  for (const other of others) assert.equal((await pond.job(other.id))?.state, 'done')
  const { kept, real } = countsOf(join(folder, 'app.db'), QUEUE)
  assert.deepEqual(kept, real)
}

// They mostly wait: for leases to run out, and for processes to start.
describe('a job that kills its worker every time ends up dead, and the others done', { concurrency: 4 }, () => {
  for (const poison of ['exit', 'abort', 'kill', 'throw later'] as const) test(poison, (t) => run(t, poison))
})
