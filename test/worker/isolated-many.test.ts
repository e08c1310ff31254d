/** One report that outgrows its memory, among ten thousand jobs: it alone dies, the others are done once each. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { isolated } from './fixture.ts'
import type { Told } from './modules/told.ts'

const JOBS = 10_000

for (const store of ['memory', 'sqlite'] as const) {
  describe(`one bad report: ${store}`, () => {
    test(`it alone dies, ${JOBS} others finish, none twice`, { timeout: 120_000 }, async (t) => {
      const url = store === 'memory' ? 'memory:' : `sqlite:${join(scratch(t), 'jobs.db')}?sync=normal`
      const limits = { isolate: { memory: '256MB', cpu: '30s' }, concurrency: 2 }
      const { pond, queue } = await isolated(t, limits, { url })
      const results = new Map<string, unknown>()
      const dead: string[] = []
      let done = 0
      pond.on('completed', ({ id, result }) => {
        done++
        results.set(id, result)
      })
      pond.on('dead', ({ id, error }) => dead.push(`${id} ${error.code}`))
      const orders: Told[] = Array.from({ length: JOBS }, (_, value) => ({ do: 'echo', value }))
      const bad: Told = { do: 'heap' }
      const pushed = await queue.pushMany(orders.toSpliced(JOBS / 2, 0, bad))
      await until(() => done + dead.length >= JOBS + 1, 'all to end', 100_000)
      const [{ id: badId } = { id: '' }] = pushed.splice(JOBS / 2, 1)
      assert.deepEqual(dead, [`${badId} MemoryExceeded`])
      assert.equal(done, JOBS)
      assert.deepEqual(
        pushed.map(({ id }) => results.get(id)),
        orders.map(({ value }) => value),
      )
      const { counts } = await queue.stats()
      assert.deepEqual([counts.done, counts.dead, counts.waiting, counts.running], [JOBS, 1, 0, 0])
    })
  })
}
