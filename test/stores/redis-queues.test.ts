/** What calls cost with thousands of queues or ended jobs. Counted in calls, and in commands that the scripts make, on a server of its own. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { open } from '../../src/stores/redis/index.ts'
import { JOB_STATES } from '../../src/values/jobs/records.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'

const QUEUES = 1000

async function crowded(t: TestContext) {
  const redis = await started(t, () => startRedis({ appendonly: false }))
  if (redis === undefined) return undefined
  const clock = { now: Date.now() }
  const store = await open(redis.url, { clock: () => clock.now })
  const other = await open(redis.url, { clock: () => clock.now })
  t.after(() => Promise.all([store.close(), other.close()]))
  const jobs = Array.from({ length: QUEUES }, (_, n) => newJob({ queue: `q${n}` }))
  for (let at = 0; at < QUEUES; at += 100) await store.operations.push({ jobs: jobs.slice(at, at + 100) })
  // What the new queues bring is done once, and the server learns the scripts.
  await store.operations.sweep({ limit: 1000 })
  await other.operations.find({ ids: [newJob().id] })
  await store.operations.find({ ids: [jobs[0]?.id ?? ''] })
  return { redis, clock, store, other, jobs }
}

/** How many scripts the server ran meanwhile, and commands in all. */
async function calls(
  redis: RedisServer,
  doing: () => Promise<unknown>,
): Promise<{ scripts: number; commands: number }> {
  await redis.command('config', 'resetstat')
  await doing()
  const stats = await redis.command('info', 'commandstats')
  let [scripts, commands] = [0, 0]
  for (const [, name, count] of stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (name?.startsWith('eval')) scripts += Number(count)
    else commands += Number(count)
  }
  return { scripts, commands }
}

describe('redis store with thousands of queues', { skip: missingReason('redis') }, () => {
  test('a sweep costs what is due', async (t) => {
    const crowd = await crowded(t)
    if (crowd === undefined) return
    const { redis, store, clock } = crowd
    const idle = await calls(redis, () => store.operations.sweep({ limit: 1000 }))
    assert.equal(idle.scripts, 1)
    assert.ok(idle.commands <= 16, `${idle.commands}`)
    await store.operations.push({ jobs: newJobs(3, { queue: 'q7', delay: 1000 }) })
    await claim(store, { queue: 'q8', lease: 1000 })
    clock.now += 1000
    let swept = { promoted: 0, lost: [] as unknown[] }
    const due = await calls(redis, async () => {
      swept = await store.operations.sweep({ limit: 1000 })
    })
    assert.deepEqual([swept.promoted, swept.lost.length], [3, 1])
    assert.equal(due.scripts, 1)
  })

  test('a job is found by its id without a call to each queue', async (t) => {
    const crowd = await crowded(t)
    if (crowd === undefined) return
    const { redis, other, jobs } = crowd
    const { id = '' } = jobs[500] ?? {}
    for (const [asked, queue] of [
      [id, 'q500'],
      [newJob().id, undefined],
    ] as const) {
      const cost = await calls(redis, async () => {
        assert.equal((await other.operations.find({ ids: [asked] }))[0]?.queue, queue)
      })
      assert.deepEqual([cost.scripts, cost.commands <= 16], [1, true])
    }
  })
})

test('lists, figures, sweeps and claims walk no jobs that they do not tell of', {
  skip: missingReason('redis'),
}, async (t) => {
  const redis = await started(t, () => startRedis({ appendonly: false }))
  if (redis === undefined) return
  const clock = { now: Date.now() }
  const store = await open(redis.url, { clock: () => clock.now })
  t.after(() => store.close())
  const costs = async (): Promise<number[]> => {
    const doings = [
      ...JOB_STATES.map((state) => () => store.operations.list({ queue: 'q', state, limit: 10 })),
      () => store.operations.stats({ queue: 'q' }),
      () => store.operations.sweep({ limit: 100 }),
      () => claim(store, { limit: 1 }),
    ]
    const counts: number[] = []
    for (const doing of doings) counts.push((await calls(redis, doing)).commands)
    return counts
  }
  await store.operations.push({ jobs: newJobs(50) })
  await costs()
  const few = await costs()
  for (let i = 0; i < 40; i++) {
    const jobs = newJobs(500)
    await store.operations.push({ jobs })
    await store.operations.cancel({ ids: jobs.map(({ id }) => id) })
    clock.now++
  }
  await store.operations.push({ jobs: newJobs(50) })
  await costs()
  const many = await costs()
  // Of 20,000 cancelled jobs that were pushed before the last 50, none is passed over one by one.
  for (const [i, cost] of many.entries()) assert.ok(cost <= (few[i] ?? 0) + 40, `${many} with many, ${few} with few`)
})
