/** The plan of a queue over HTTP: what was measured, and a figure that an autoscaler can follow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import { LIMITS } from '../../src/serve/bounds.ts'
import { PlanHolds } from '../../src/serve/plan-holds.ts'
import { Service } from '../../src/serve/service.ts'
import { openStore } from '../../src/stores/open.ts'
import { bucketOf } from '../../src/values/figures/histogram.ts'
import { answered, isProblem, serveTest } from './client.ts'

test('a plan goes by the backlog and what was measured, and falls late', async () => {
  const store = await openStore('memory:', {})
  const pond = new Millpond(store, LIMITS.maxPayload)
  const service = new Service({ store, pond, limits: LIMITS, tokens: [], hosts: [], onError: assert.ifError })
  const plan = async (query = '') => {
    const { status, body } = await answered(
      await service.handle(new Request(`http://localhost/v1/queues/q/plan${query}`)),
    )
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const none = await plan()
  assert.deepEqual([none.workers, none.wanted, none.backlog, none.work], [0, 0, 0, null])
  const queue = pond.queue('q')
  const pushed = await queue.pushMany(Array.from({ length: 40 }, (_, n) => n))
  const first = await plan()
  assert.deepEqual(
    [first.workers, first.backlog, first.work],
    [1, 40, null],
    'one worker finds out how long a job runs',
  )

  // A worker elsewhere says that 300 jobs ran for a second each, within the last 5 minutes.
  const buckets = { [bucketOf(1_000)]: 300 }
  const slices = (['wait', 'run'] as const).map((metric) => ({ queue: 'q', priority: 4, metric, buckets }))
  await store.operations.record({ slices })
  const measured = await plan('?drainWithin=10000')
  assert.equal(measured.rate, 1)
  assert.ok(Math.abs(Number(measured.work) - 1_000) < 50, `${measured.work}`)
  assert.ok(Number(measured.workers) >= 5, JSON.stringify(measured))
  assert.equal(measured.workers, (await queue.plan({ drainWithin: '10s' })).workers)

  await store.operations.cancel({ ids: pushed.map(({ id }) => id) })
  const after = await plan('?drainWithin=10000')
  assert.equal(after.backlog, 0)
  assert.ok(Number(after.wanted) < Number(measured.workers))
  assert.equal(after.workers, measured.workers, 'it is held')
  assert.equal((await plan('?drainWithin=10000&hold=0')).workers, after.wanted)
  await service.drained()
  await pond.close()
})

serveTest('wrong settings of a plan are refused', async ({ open }) => {
  const client = await open()
  for (const query of ['hold=-1', 'minutes=61', 'wait=0', 'drainWithin=soon']) {
    isProblem(await answered(await client.raw('GET', `/v1/queues/q/plan?${query}`)), 422, 'InvalidOption')
  }
})

test('a rise holds for its time, then the highest of what came later', () => {
  const holds = new PlanHolds()
  const at = (now: number, workers: number) => holds.held('q', workers, 100, now)
  assert.deepEqual(
    [at(0, 5), at(10, 2), at(20, 8), at(60, 3), at(90, 4), at(119, 1), at(121, 1), at(190, 1), at(191, 1), at(400, 0)],
    [5, 5, 8, 8, 8, 8, 4, 1, 1, 0],
  )
})

test('each queue and setting has its own, and the oldest is forgotten', () => {
  const holds = new PlanHolds()
  holds.held('first', 9, 100, 0)
  for (let n = 0; n < 1_000; n++) holds.held(`other ${n}`, 1, 100, 0)
  assert.equal(holds.held('first', 1, 100, 1), 1)
  assert.equal(holds.held('other 999', 0, 100, 1), 1)
})
