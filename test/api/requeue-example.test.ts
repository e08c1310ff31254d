/** `examples/requeue-timeouts.ts` as it is: it shows what it would send back, then sends back those and no others. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/requeue-timeouts.ts', import.meta.url))
const SOURCES = new URL('../web/adapters-source.ts', import.meta.url).href
const run = promisify(execFile)

test('examples/requeue-timeouts.ts sends back the jobs that died of a timeout', async (t) => {
  const STORE = `sqlite:${join(scratch(t), 'app.db')}`
  const pond = await Millpond.open(STORE)
  after(t, () => pond.close())
  const reports = pond.queue<number>('reports', { retry: { attempts: 1 } })
  await reports.pushMany([1, 2, 3, 4, 5])
  // A job that died, whose key a live job has, stays.
  await reports.push(7, { key: 'k' })
  const worker = reports.work((job) => {
    throw new Error(job.data % 2 === 1 ? 'TIMEOUT of the printer' : 'refused')
  })
  await until(async () => (await reports.stats()).counts.dead === 6, 'all jobs are dead')
  await worker.close()
  await reports.push(8, { key: 'k', delay: '1d' })

  const example = async (...args: string[]) => {
    const options = { env: { ...process.env, STORE }, timeout: 30_000 }
    return (await run(process.execPath, ['--import', SOURCES, EXAMPLE, ...args], options)).stdout
  }
  const shown = await example()
  assert.match(shown, /^4 jobs, such as\n(?: {2}[0-9a-f-]{36} TIMEOUT of the printer\n){4}To requeue them: /)
  assert.equal((await reports.stats()).counts.dead, 6)
  const from = /--go --after (\S+)$/m.exec(shown)?.[1] ?? assert.fail(shown)
  assert.match(await example('--go', '--after', from), /^3 requeued, 1 left, since a live job has their key$/m)
  const waiting = await reports.jobs('waiting')
  assert.deepEqual(waiting.map(({ data }) => data).sort(), [1, 3, 5])
  assert.match(await example('--go'), /^0 requeued, 1 left/m)
})
