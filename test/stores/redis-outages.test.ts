/** Servers that go away and come back, and connections that are cut: jobs are late, and none is lost. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { open } from '../../src/stores/redis/index.ts'
import { claim } from '../conformance/suite.ts'
import { started } from '../servers/fixtures.ts'
import { startProxy } from '../servers/proxy.ts'
import { startRedis } from '../servers/redis.ts'
import { missingReason } from '../servers/shared.ts'
import { newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const unavailable = (error: unknown): boolean => isMillpondError(error, 'StoreUnavailable')

/** A pond that pushes and works all the time, and what it was told of. */
async function busy(t: TestContext, url: string, options: Record<string, unknown> = {}) {
  const pond = await Millpond.open(url, { timeout: 2000, ...options })
  t.after(() => {
    going = false
    return pond.close({ timeout: 1000 })
  })
  pond.on('error', () => undefined)
  const queue = pond.queue<number>('q', { lease: '5s' })
  const acknowledged = new Set<string>()
  const done = new Map<string, number>()
  let going = true
  queue.work((job) => void done.set(job.id, (done.get(job.id) ?? 0) + 1), { concurrency: 20 })
  const push = async (): Promise<void> => {
    while (going) {
      try {
        acknowledged.add((await queue.push(1)).id)
      } catch (error) {
        assert.ok(unavailable(error), String(error))
      }
      await sleep(1)
    }
  }
  const pushing = Promise.all([push(), push(), push()])
  return {
    acknowledged,
    done,
    async settled() {
      going = false
      await pushing
      await until(() => [...acknowledged].every((id) => done.has(id)), 'all that was acknowledged is done')
    },
  }
}

/** Waits until that many more jobs are acknowledged. */
const more = (acknowledged: ReadonlySet<string>, count: number): Promise<void> => {
  const goal = acknowledged.size + count
  return until(() => acknowledged.size >= goal, `${count} more acknowledged`)
}

describe('redis store in trouble', { skip: missingReason('redis') }, () => {
  test('a server killed and restarted: workers and pushes go on by themselves, nothing acknowledged is lost', async (t) => {
    const redis = await started(t, () => startRedis({ appendfsync: 'always' }))
    if (redis === undefined) return
    const { acknowledged, settled } = await busy(t, redis.url)
    for (let round = 0; round < 3; round++) {
      await more(acknowledged, 50)
      await redis.kill('SIGKILL')
      await redis.restart()
    }
    await more(acknowledged, 50)
    await settled()
  })

  test('connections cut: calls in flight succeed or are rejected, and never both', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const proxy = await startProxy(redis.port)
    t.after(() => proxy.stop())
    const { acknowledged, settled } = await busy(t, `redis://127.0.0.1:${proxy.port}`)
    for (let round = 0; round < 10; round++) {
      await more(acknowledged, 20)
      proxy.cut()
    }
    await more(acknowledged, 20)
    await settled()
    const store = await open(redis.url, {})
    // A push that was rejected may be stored all the same, and a job that was handled be completed only after its lease.
    await until(async () => {
      const [stats] = await store.operations.stats({ queue: 'q' })
      const { scheduled = 1, waiting = 1, running = 1 } = stats?.counts ?? {}
      return scheduled + waiting + running === 0
    }, 'nothing is left')
    await store.close()
  })

  test('a server out of reach: calls are rejected within the time, and work again when it is back', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const proxy = await startProxy(redis.port)
    t.after(() => proxy.stop())
    const store = await open(`redis://127.0.0.1:${proxy.port}`, { timeout: 300 })
    t.after(() => store.close())
    const job = newJob()
    await store.operations.push({ jobs: [newJob()] })
    await proxy.block()
    proxy.cut()
    await assert.rejects(store.operations.push({ jobs: [job] }), unavailable)
    await assert.rejects(store.operations.find({ ids: [job.id] }), unavailable)
    await proxy.allow()
    for (let tries = 1; ; tries++) {
      const outcomes = await store.operations
        .push({ jobs: [job] })
        .catch((error: unknown) => assert.ok(unavailable(error)))
      if (!outcomes) continue
      // A try whose answer came too late has stored it all the same.
      if (tries === 1) assert.equal(outcomes[0]?.status, 'pushed')
      break
    }
    await proxy.blackhole()
    const late = newJob()
    await assert.rejects(store.operations.push({ jobs: [late] }), unavailable)
    await proxy.allow()
    proxy.cut()
    // Whether the push that was not answered got through, nobody can tell; repeating it makes no second job.
    await store.operations.push({ jobs: [late] }).catch(() => store.operations.push({ jobs: [late] }))
    const ids = (await claim(store)).jobs.map(({ id }) => id)
    assert.equal(ids.filter((id) => id === late.id).length, 1)
  })

  test('bells come again after the connection was lost', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const proxy = await startProxy(redis.port)
    t.after(() => proxy.stop())
    const sleeper = await open(`redis://127.0.0.1:${proxy.port}`, {})
    const pusher = await open(redis.url, {})
    t.after(() => Promise.all([sleeper.close(), pusher.close()]))
    let bells = 0
    sleeper.listen(() => bells++)
    const rung = async (): Promise<void> => {
      const before = bells
      for (let tries = 0; bells === before; tries++) {
        assert.ok(tries < 1000, 'no bell came')
        await claim(sleeper)
        await pusher.operations.push({ jobs: newJobs(1) })
        await sleep(5)
      }
    }
    await rung()
    proxy.cut()
    await until(() => proxy.connections >= 2, 'the connections are back')
    await rung()
  })

  test('whoever listens, or listens again, looks for what went unheard before', async (t) => {
    const redis = await started(t, () => startRedis())
    if (redis === undefined) return
    const proxy = await startProxy(redis.port)
    t.after(() => proxy.stop())
    const store = await open(`redis://127.0.0.1:${proxy.port}`, {})
    t.after(() => store.close())
    let cancels = 0
    await claim(store)
    store.listen((bell) => {
      if (bell.kind === 'cancelled' && bell.queue === 'q') cancels++
    })
    await until(() => cancels > 0, 'it listens')
    cancels = 0
    proxy.cut()
    await until(() => cancels > 0, 'it listens again')
  })
})
