/**
 * A rate over four processes, by the store's own times of the starts: no second ever has more than the rate and its burst. `lab/limits` measures
 * by the clock of the jobs, and that what is allowed is used.
 */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { start } from './harness.ts'
import { DURABLE_STORES } from './places.ts'
import type { LimitedConfig } from './roles/limited.ts'

const PROCESSES = 4
const RATE = 100
const BURST = 10
const JOBS = 350
const OPTIONS = { limits: { rate: `${RATE}/s` } } as const

/** The most that begin within a second. @param times in order */
function mostInASecond(times: readonly number[]): number {
  return Math.max(...times.map((from, at) => times.slice(at).filter((time) => time < from + 1000).length))
}

for (const [store, urlOf] of Object.entries(DURABLE_STORES)) {
  test(`${store}: four processes together start no more than the rate allows`, async (t) => {
    const url = await urlOf(t)
    if (url === undefined) return
    const pond = await Millpond.open(url)
    after(t, () => pond.close())
    const queue = pond.queue<number>('jobs', OPTIONS)
    const pushed = await queue.pushMany(Array.from({ length: JOBS }, (_, n) => n))
    const config: LimitedConfig = {
      ...{ url, queue: 'jobs', options: OPTIONS, work: { concurrency: 10 } },
      ...{ ledger: join(scratch(t), 'ledger'), takes: [0, 5] },
    }
    const workers = Array.from({ length: PROCESSES }, () => start(t, 'limited', config))
    await until(async () => (await queue.stats()).counts.done === JOBS, 'all jobs are done')
    const jobs = await Promise.all(pushed.map(({ id }) => pond.job(id)))
    const times = jobs.map((job) => job?.startedAt?.getTime() ?? Number.NaN).sort((a, b) => a - b)
    assert.ok(times.every(Number.isFinite))
    const most = mostInASecond(times)
    t.diagnostic(`${store}: most in any second ${most}, in all ${(times.at(-1) ?? 0) - (times[0] ?? 0)} ms`)
    // Starts have whole milliseconds: what began at the end of the second may count for its last one.
    assert.ok(most <= RATE + BURST + 1, `${most} in a second`)
    assert.ok(new Set(jobs.map((job) => job?.worker)).size > 1, 'one process alone had all of the jobs')
    for (const worker of workers) assert.deepEqual(worker.said('trouble'), [])
  })
}
