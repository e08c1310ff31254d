/** One report that outgrows its memory, among thousands of jobs: it alone dies, the others are done once each. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { scratch } from '../support/cleaning.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { isolated } from './fixture.ts'
import type { Told } from './modules/told.ts'

const JOBS = depth(1000, 10_000)

test(`one bad report alone dies, ${JOBS} others finish, none twice`, { timeout: 120_000 }, async (t) => {
  const url = `sqlite:${join(scratch(t), 'jobs.db')}?sync=normal`
  const limits = { isolate: { memory: '192MB', cpu: '30s' }, concurrency: 2 }
  const { pond, queue } = await isolated(t, limits, { url })
  const results = new Map<string, unknown>()
  const attempts = new Set<number>()
  const dead: string[] = []
  let done = 0
  pond.on('completed', ({ id, attempt, result }) => {
    done++
    attempts.add(attempt)
    results.set(id, result)
  })
  pond.on('dead', ({ id, error }) => dead.push(`${id} ${error.code}`))
  const reports: Told[] = Array.from({ length: JOBS }, (_, value) => ({ do: 'echo', value }))
  const pushed = await queue.pushMany(reports.toSpliced(JOBS / 2, 0, { do: 'heap' }))
  await until(() => done + dead.length > JOBS, 'all to end', 100_000)
  const bad = pushed[JOBS / 2]?.id
  assert.deepEqual(dead, [`${bad} MemoryExceeded`])
  assert.deepEqual([done, ...attempts], [JOBS, 1])
  assert.deepEqual(
    pushed.filter(({ id }) => id !== bad).map(({ id }) => results.get(id)),
    reports.map(({ value }) => value),
  )
  const { done: stored, dead: failed, waiting, running } = (await queue.stats()).counts
  assert.deepEqual([stored, failed, waiting, running], [JOBS, 1, 0, 0])
})
