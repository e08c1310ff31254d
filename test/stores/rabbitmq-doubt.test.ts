/** Where the RabbitMQ store cannot know what became of a call, it closes the connection, and begins from nothing on a new one. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { connect } from 'amqplib'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { ERROR, newJob, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { clear, freshPrefix } from './rabbitmq-fixture.ts'

const URL_ = serverUrl('rabbitmq') ?? ''

async function throughProxy(t: TestContext, query: string): Promise<{ store: Store; proxy: TcpProxy; prefix: string }> {
  const prefix = freshPrefix()
  const proxy = await startProxy(Number(new URL(URL_).port))
  const store = await open(`amqp://127.0.0.1:${proxy.port}?prefix=${prefix}&${query}`, {})
  after(t, () => clear(URL_, prefix))
  after(t, () => proxy.stop())
  after(t, () => store.close())
  return { store, proxy, prefix }
}

const claim = async (store: Store, limit = 10) =>
  (await store.operations.claim({ queue: 'q', worker: 'w', limit, lease: null })).jobs

describe('RabbitMQ in doubt', { skip: missingReason('rabbitmq') }, () => {
  test('after a silence the next push connects anew, long before the heartbeat', { timeout: 30_000 }, async (t) => {
    const { store, proxy } = await throughProxy(t, 'timeout=500&heartbeat=600')
    await store.operations.push({ jobs: [newJob()] })
    await proxy.blackhole()
    await assert.rejects(store.operations.push({ jobs: [newJob()] }), (e) => isMillpondError(e, 'StoreUnavailable'))
    await proxy.allow()
    await store.operations.push({ jobs: [newJob()] })
    assert.ok((await claim(store)).length >= 2)
  })

  test('a busy event loop does not take its own late answers for lost', async (t) => {
    const { store } = await throughProxy(t, 'timeout=700')
    await store.operations.push({ jobs: [newJob()] })
    const [job] = await claim(store)
    assert.ok(job)
    const items = [{ id: job.id, fence: job.fence, result: null }]
    const calls = Promise.all([
      store.operations.push({ jobs: [newJob()] }),
      store.operations.complete({ queue: 'q', items }),
    ])
    await setImmediate()
    const end = performance.now() + 1000
    while (performance.now() < end);
    const [pushed, completed] = await calls
    assert.deepEqual([pushed[0]?.status, completed[0]], ['pushed', 'ok'])
  })

  test('the lost confirm of a retry: the job runs again, and nothing of it stays behind', async (t) => {
    const { store, proxy, prefix } = await throughProxy(t, 'timeout=500')
    const job = newJob()
    await store.operations.push({ jobs: [job] })
    const [claimed] = await claim(store)
    assert.ok(claimed)
    // The connection for claims was made first. What the other one sends arrives.
    proxy.mute(1)
    const failure = { id: claimed.id, fence: claimed.fence, error: ERROR, delay: 1 }
    const failing = store.operations.fail({ queue: 'q', items: [failure] })
    await assert.rejects(failing, (e) => isMillpondError(e, 'StoreUnavailable'))
    const extension = { id: claimed.id, fence: claimed.fence, progress: null }
    assert.deepEqual(await store.operations.extend({ queue: 'q', items: [extension], lease: null }), ['stale'])
    const lost: string[] = []
    await until(async () => {
      lost.push(...(await store.operations.sweep({ limit: 10 })).lost.map(({ id }) => id))
      return lost.length > 0
    }, 'the claim is lost')
    assert.deepEqual(lost, [job.id])
    // The original, and its copy, which RabbitMQ has all the same.
    let runs = 0
    await until(async () => {
      const jobs = await claim(store)
      runs += jobs.length
      const items = jobs.map(({ id, fence }) => ({ id, fence, result: null }))
      await store.operations.complete({ queue: 'q', items })
      return runs >= 1 && jobs.length === 0
    }, 'all that is left of the job has run')
    await store.close()
    assert.equal(await ready(prefix), 0)
  })

  test('while the confirm of a retry is awaited, its copy is not given out: what ran of it would be lost', async (t) => {
    const { store, proxy } = await throughProxy(t, 'timeout=700')
    await store.operations.push({ jobs: [newJob()] })
    const [claimed] = await claim(store)
    assert.ok(claimed)
    proxy.mute(1)
    const failure = { id: claimed.id, fence: claimed.fence, error: ERROR, delay: 1 }
    let isOver = false
    const failing = store.operations.fail({ queue: 'q', items: [failure] })
    const over = failing
      .catch(() => undefined)
      .then(() => {
        isOver = true
      })
    const early: unknown[] = []
    let late = 0
    await until(async () => {
      const jobs = await claim(store).catch(() => [])
      if (isOver) late += jobs.length
      else early.push(...jobs)
      return isOver
    }, 'the doubt is over')
    await over
    assert.deepEqual(early, [])
    await until(async () => {
      late += (await claim(store)).length
      return late > 0
    }, 'the job comes again')
  })

  test('close gives back what was only fetched, and no attempt is counted', async (t) => {
    const { store, prefix } = await throughProxy(t, 'timeout=5000')
    await store.operations.push({ jobs: newJobs(200) })
    let done = 0
    await until(async () => {
      const items = (await claim(store)).map(({ id, fence }) => ({ id, fence, result: null }))
      done += items.length
      // What is acknowledged makes room for more that RabbitMQ sends.
      await store.operations.complete({ queue: 'q', items })
      return done >= 50
    }, 'some are done')
    await store.close()
    const next = await open(`${URL_}?prefix=${prefix}`, {})
    after(t, () => next.close())
    const attempts: number[] = []
    await until(async () => {
      attempts.push(...(await claim(next, 200)).map(({ attempt }) => attempt))
      return attempts.length === 200 - done
    }, 'all others are claimed')
    assert.deepEqual(attempts, Array(200 - done).fill(1))
  })
})

/** Messages of the queue that wait in RabbitMQ. */
async function ready(prefix: string): Promise<number> {
  const connection = await connect(URL_)
  const channel = await connection.createChannel()
  const counts = ['4', '4.again'].map((line) => channel.checkQueue(`${prefix}.jobs.q.${line}`))
  const messages = (await Promise.all(counts)).map(({ messageCount }) => messageCount)
  await connection.close()
  return messages.reduce((sum, each) => sum + each)
}
