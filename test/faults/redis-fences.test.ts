/** No fence is given out twice: not even by a server that has lost the last claims, in a crash or in a failover. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Store, StoreOptions } from '../../src/store.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim, first } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { type RedisServer, startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { NULL, newJob, newJobs } from '../support/jobs.ts'

/** The server as it was when it was last saved. */
async function rolledBack(redis: RedisServer): Promise<void> {
  await redis.kill('SIGKILL')
  await redis.restart()
}

/** The first claim that gets something, once the server is back. */
async function claimed(store: Store, queue = 'q') {
  for (;;) {
    const { jobs } = await claim(store, { queue, limit: 1 }).catch(() => ({ jobs: [] }))
    if (jobs.length > 0) return first(jobs)
  }
}

describe('redis store: fences', { skip: missingReason('redis') }, () => {
  for (const [kind, optionsFor] of [
    ['its own client', () => ({})],
    ['a client of the caller’s', (url: string) => ({ client: new Redis(url) })],
  ] as const) {
    test(`after a crash that lost the claims, with ${kind}: later claims have other fences, and only they count`, async (t) => {
      const redis = await started(t, () => startRedis({ appendonly: false }))
      if (redis === undefined) return
      const options: StoreOptions & { client?: Redis } = optionsFor(redis.url)
      const store = await open(redis.url, options)
      const other = await open(redis.url, {})
      t.after(async () => {
        await Promise.all([store.close(), other.close()])
        options.client?.disconnect()
      })
      options.client?.on('error', () => undefined)
      assert.deepEqual((await claim(store)).jobs, [])
      for (const queue of ['q', 'q2'])
        await store.operations.push({ jobs: [newJob({ queue }), newJob({ queue, key: 'k' })] })
      const released = await claim(store, { limit: 1 })
      assert.deepEqual(await store.operations.release({ queue: 'q', items: released.jobs }), ['ok'])
      await redis.command('save')
      const lost = [...(await claim(store)).jobs, ...(await claim(store, { queue: 'q2' })).jobs]
      assert.deepEqual(
        lost.map(({ fence }, i) => fence - (lost[i < 2 ? 1 : 2]?.fence ?? 0)),
        [1, 0, 0, 0],
      )
      await rolledBack(redis)
      // Whoever has learnt of the other run first tells no other queue of it.
      for (const [by, queue] of [
        [other, 'q'],
        [store, 'q2'],
      ] as const) {
        const given = [await claimed(by, queue), ...(await claim(by, { queue })).jobs]
        assert.equal(given.length, 2)
        for (const { id, fence } of given) {
          const before = lost.find((claim) => claim.id === id)
          assert.ok(before !== undefined && fence > before.fence, `${fence} after ${before?.fence}`)
          assert.deepEqual(await store.operations.complete({ queue, items: [{ ...before, result: NULL }] }), ['stale'])
          assert.deepEqual(
            await store.operations.extend({ queue, lease: 1000, items: [{ ...before, progress: null }] }),
            ['stale'],
          )
        }
        const [kept, again] = given
        assert.ok(kept && again)
        assert.deepEqual(await by.operations.release({ queue, items: [again] }), ['ok'])
        const next = await claimed(by, queue)
        assert.deepEqual([next.id, next.fence], [again.id, again.fence + 1], 'then by one again')
        assert.deepEqual(await store.operations.complete({ queue, items: [{ ...kept, result: NULL }] }), ['ok'])
      }
    })
  }

  test('two runs from one snapshot give out different fences, however soon after each other', async (t) => {
    const redis = await started(t, () => startRedis({ appendonly: false }))
    if (redis === undefined) return
    const store = await open(redis.url, {})
    t.after(() => store.close())
    await store.operations.push({ jobs: [newJob()] })
    await redis.command('save')
    await rolledBack(redis)
    const second = await claimed(store)
    await store.operations.release({ queue: 'q', items: [second] })
    await redis.command('save')
    const fences = [second.fence]
    let late = second
    for (let run = 0; run < 3; run++) {
      await rolledBack(redis)
      const next = await claimed(store)
      assert.ok(next.fence > Math.max(...fences), `${next.fence} after ${fences}`)
      assert.deepEqual(await store.operations.complete({ queue: 'q', items: [{ ...late, result: NULL }] }), ['stale'])
      fences.push(next.fence)
      late = next
    }
  })

  test('a claim that was under way when the server crashed, and is sent again, gets another fence', async (t) => {
    const redis = await started(t, () => startRedis({ appendonly: false }))
    if (redis === undefined) return
    const store = await open(redis.url, {})
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    await store.operations.push({ jobs: newJobs(2) })
    await redis.command('save')
    const lost = await claimed(other)
    // What it knows of the server stands in the call already, and is not so any more when that arrives.
    assert.deepEqual((await claim(store, { queue: 'other' })).jobs, [])
    process.kill(redis.pid, 'SIGSTOP')
    const claiming = claim(store)
    await rolledBack(redis)
    const { jobs } = await claiming
    assert.deepEqual(first(jobs).id, lost.id)
    assert.ok(jobs.length === 2 && jobs.every(({ fence }) => fence > lost.fence))
  })

  test('a replica that takes over without the last claims gives out other fences', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const replica = await started(t, () => startRedis({ replicaOf: redis }))
    if (replica === undefined) return
    const store = await open(redis.url, { wait: 1 })
    await store.operations.push({ jobs: newJobs(2) })
    await replica.command('replicaof', 'no', 'one')
    const { jobs } = await claim(store)
    const successor = await open(replica.url, {})
    t.after(() => Promise.all([store.close(), successor.close()]))
    const taken = (await claim(successor)).jobs
    assert.deepEqual(
      taken.map(({ id }) => id),
      jobs.map(({ id }) => id),
    )
    assert.ok(taken.every(({ fence }, i) => fence > (jobs[i]?.fence ?? 0)))
    const { jobs: none } = await claim(successor)
    assert.deepEqual(none, [])
  })

  test('what a queue knows of the server is kept with its first job, and fences go on by one while the server runs', async (t) => {
    const redis = await started(t, () => startRedis({ appendonly: false }))
    if (redis === undefined) return
    const store = await open(redis.url, {})
    const other = await open(redis.url, {})
    t.after(() => Promise.all([store.close(), other.close()]))
    await store.operations.push({ jobs: [newJob()] })
    await redis.command('save')
    const lost = await claimed(store)
    await rolledBack(redis)
    let fence = (await claimed(other)).fence
    assert.ok(fence > lost.fence)
    const [{ id }] = [lost]
    await rolledBack(redis)
    const twice = (await claimed(other)).fence
    assert.ok(twice > fence, 'the server has lost that it had lost something')
    fence = twice
    // Others who learn of it later do not raise it once more.
    for (const by of [store, other, store, other]) {
      for (let tries = 0; tries < 2; tries++) {
        assert.deepEqual(await other.operations.release({ queue: 'q', items: [{ id, fence }] }), ['ok'])
        const next = await claimed(by)
        assert.equal(next.fence, fence + 1)
        fence = next.fence
      }
    }
  })
})
