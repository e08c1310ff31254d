/** Where the RabbitMQ store cannot know what became of a call, it closes the connection, and begins from nothing on a new one. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { startProxy, type TcpProxy } from '../servers/proxy.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { newJob } from '../support/jobs.ts'
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
    const { store } = await throughProxy(t, 'timeout=100')
    await store.operations.push({ jobs: [newJob()] })
    const [job] = await claim(store)
    assert.ok(job)
    const items = [{ id: job.id, fence: job.fence, result: null }]
    const calls = Promise.all([
      store.operations.push({ jobs: [newJob()] }),
      store.operations.complete({ queue: 'q', items }),
    ])
    await setImmediate()
    const end = performance.now() + 300
    while (performance.now() < end);
    const [pushed, completed] = await calls
    assert.deepEqual([pushed[0]?.status, completed[0]], ['pushed', 'ok'])
  })
})
