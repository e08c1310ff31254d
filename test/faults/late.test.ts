/**
 * The lease runs out without the worker's knowing, as when the machine's clock jumps ahead: it runs on, finishes before it
 * asks for more time, and is refused by the fence alone.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { occupy, QUEUE, scene } from './gates.ts'
import { countsOf, liveIn, look } from './harness.ts'

for (const transaction of [false, true]) {
  for (const then of ['runs', 'is done'] as const) {
    const mode = transaction ? 'transaction: true' : 'plain'
    test(`${mode}: a worker that finishes after its lease is refused, when the job ${then} elsewhere`, async (t) => {
      const place = await scene(t, '10m', 0)
      const { path } = place
      const late = place.worker(transaction, 'before')
      await late.hear('ready')
      // With nothing free and nothing buffered, it does not claim its own job anew.
      const { held } = await occupy(place, late, 0)
      look(path, `update millpond_jobs set lease_until = 0 where state = 'running'`)

      const second = place.worker(transaction, then === 'runs' ? 'before' : 'never')
      const { worker } = await second.hear('ready')
      const job = () => {
        const [row = {}] = look(path, 'select state, worker, fence, attempt from millpond_jobs where id = ?', held)
        return { ...row }
      }
      if (then === 'runs') await second.hear('held')
      else await until(() => liveIn(path, QUEUE) === 0, 'the second worker has done all')
      assert.deepEqual(job(), { state: then === 'runs' ? 'running' : 'done', worker, fence: 2, attempt: 2 })

      late.send({ kind: 'open' })
      assert.equal((await late.hear('stale')).id, held)
      assert.deepEqual(late.said('aborted'), [], 'it was not told before it had finished')
      assert.deepEqual(job(), { state: then === 'runs' ? 'running' : 'done', worker, fence: 2, attempt: 2 })
      second.send({ kind: 'open' })
      await until(() => liveIn(path, QUEUE) === 0, 'all is done')
      assert.deepEqual(job(), { state: 'done', worker, fence: 2, attempt: 2 })
      if (transaction) {
        const effects = look(path, 'select fence from effects where id = ?', held).map(({ fence }) => fence)
        assert.deepEqual(effects, [2])
      }
      const { kept, real } = countsOf(path, QUEUE)
      assert.deepEqual(kept, real)
    })
  }
}
