/** Messages of other programs: none is lost, copied or changed, and what is not handled goes back to its own queue. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type ConfirmChannel, connect, type Options } from 'amqplib'
import type { Store } from '../../src/store.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import type { ClaimedJob } from '../../src/values/jobs/records.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { ERROR, newJobs } from '../support/jobs.ts'
import { until } from '../support/until.ts'
import { clear, freshPrefix } from './rabbitmq-fixture.ts'

const URL_ = serverUrl('rabbitmq') ?? ''

interface Foreign {
  store: Store
  channel: ConfirmChannel
  prefix: string
  queue: string
  publish(count: number, options?: Options.Publish): Promise<void>
  claim(limit: number): Promise<ClaimedJob[]>
}

/** A queue of another program, and a store that works it off. */
async function foreign(t: TestContext, type = 'quorum'): Promise<Foreign> {
  const prefix = freshPrefix()
  const queue = `orders-${prefix}`
  const connection = await connect(URL_)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(queue, { arguments: { 'x-queue-type': type } })
  const store = await open(`${URL_}?foreign=1&prefix=${prefix}`, {})
  after(t, async () => {
    await store.close()
    await channel.deleteQueue(queue)
    await connection.close()
    await clear(URL_, prefix, [queue])
  })
  return {
    ...{ store, channel, prefix, queue },
    async publish(count, options = {}) {
      for (let n = 0; n < count; n++)
        channel.sendToQueue(queue, Buffer.from(`${n}`), { contentType: 'application/json', ...options })
      await channel.waitForConfirms()
    },
    async claim(limit) {
      const jobs: ClaimedJob[] = []
      await until(async () => {
        const request = { queue, worker: 'w', limit: limit - jobs.length, lease: null }
        jobs.push(...(await store.operations.claim(request)).jobs)
        return jobs.length === limit
      }, `${limit} jobs are claimed`)
      return jobs
    },
  }
}

const holdOf = ({ id, fence }: ClaimedJob) => ({ id, fence })

describe('RabbitMQ: messages of other programs', { skip: missingReason('rabbitmq') }, () => {
  test('ten messages with one message-id are ten jobs', async (t) => {
    const { store, channel, queue, publish, claim } = await foreign(t)
    await publish(10, { messageId: '01a21d4b-1fc6-75dc-8768-773c215c8bee' })
    const jobs = await claim(10)
    assert.equal(new Set(jobs.map(({ id }) => id)).size, 10)
    assert.equal(jobs[0]?.headers?.['message-id'], '01a21d4b-1fc6-75dc-8768-773c215c8bee')
    await store.operations.complete({ queue, items: jobs.map((job) => ({ ...holdOf(job), result: null })) })
    await store.close()
    assert.equal((await channel.checkQueue(queue)).messageCount, 0)
  })

  for (const type of ['classic', 'quorum']) {
    test(`a ${type} queue gets back what was released or only fetched`, async (t) => {
      const { store, channel, prefix, queue, publish, claim } = await foreign(t, type)
      await publish(100)
      const jobs = await claim(20)
      await store.operations.complete({
        queue,
        items: jobs.slice(0, 10).map((job) => ({ ...holdOf(job), result: null })),
      })
      await store.operations.release({ queue, items: jobs.slice(10).map(holdOf) })
      await store.close()
      await until(async () => (await channel.checkQueue(queue)).messageCount === 90, 'the queue has all others')
      await assert.rejects(async () => {
        const connection = await connect(URL_)
        after(t, () => connection.close())
        const other = await connection.createChannel()
        other.on('error', () => undefined)
        await other.checkQueue(`${prefix}.jobs.${queue}.4.again`)
      }, /NOT_FOUND/)
    })
  }

  test('headers and errors that cannot be written make one job dead, and the others go through', async (t) => {
    const { store, channel, prefix, queue, publish, claim } = await foreign(t)
    await publish(3, { headers: { tenant: 7 } })
    // amqplib writes at most 64 KB of headers. RabbitMQ has just that much, and the error comes on top.
    await publish(1, { headers: { large: 'x'.repeat(65_400) } })
    const jobs = await claim(4)
    const error = { ...ERROR, message: '\u0000'.repeat(12_000) }
    const items = jobs.map((job, index) => ({ ...holdOf(job), error: index === 0 ? error : ERROR, delay: null }))
    assert.deepEqual(await store.operations.fail({ queue, items }), ['dead', 'dead', 'dead', 'dead'])
    const dead: Record<string, unknown>[] = []
    for (let n = 0; n < 4; n++) {
      const message = await channel.get(`${prefix}.jobs.${queue}.dead`, { noAck: true })
      dead.push(message === false ? {} : (message.properties.headers ?? {}))
    }
    const kept = dead.filter((headers) => headers.tenant === 7 && headers['millpond-left-out'] === undefined)
    const short = dead.filter((headers) => headers['millpond-left-out'] === true)
    assert.deepEqual([kept.length, short.length], [2, 2])
    for (const headers of dead) assert.equal(JSON.parse(String(headers['millpond-error'])).code, ERROR.code)
    await store.close()
    assert.equal((await channel.checkQueue(queue)).messageCount, 0)
  })

  test('a queue that its owner consumes alone does not stop our own jobs of that name', async (t) => {
    const { store, channel, queue, publish } = await foreign(t, 'classic')
    await publish(1)
    await store.operations.push({ jobs: newJobs(5, { queue }) })
    const ask = (limit: number) => store.operations.claim({ queue, worker: 'w', limit, lease: null })
    const { consumerTag } = await channel.consume(queue, () => undefined, { exclusive: true })
    after(t, () => channel.cancel(consumerTag))
    const jobs: ClaimedJob[] = []
    const errors: string[] = []
    await until(async () => {
      const claimed = await ask(2).catch((error: Error) => errors.push(error.message))
      if (typeof claimed === 'object') jobs.push(...claimed.jobs)
      return jobs.length === 5 && errors.length > 0
    }, 'our own jobs are claimed, and the refusal is told')
    assert.match(errors.join(), /ACCESS_REFUSED/)
    const items = jobs.map((job) => ({ ...holdOf(job), result: null }))
    assert.deepEqual(await store.operations.complete({ queue, items }), Array(5).fill('ok'))
  })

  test('its second attempt sees the same headers, and no queue gets a copy', async (t) => {
    const { store, channel, prefix, queue, publish, claim } = await foreign(t)
    const carbon = `carbon-${prefix}`
    await channel.assertQueue(carbon)
    after(t, () => channel.deleteQueue(carbon))
    const messageId = '01a21d4b-1fc6-75dc-8768-773c215c8bee'
    const options = { messageId, contentEncoding: 'gzip', CC: [carbon], headers: { 'millpond-timeout': -5, tenant: 7 } }
    await publish(1, options)
    store.operations.configure({ queue, attempts: 2 })
    const [first] = await claim(1)
    assert.ok(first)
    assert.equal(first.headers?.['content-encoding'], 'gzip')
    assert.equal(first.data.encoding, 'bytes')
    assert.equal(first.timeout, null)
    const fail = async (job: ClaimedJob) =>
      store.operations.fail({ queue, items: [{ ...holdOf(job), error: ERROR, delay: 20 }] })
    assert.deepEqual(await fail(first), ['retry'])
    const [second] = await claim(1)
    assert.ok(second)
    assert.deepEqual([second.attempt, second.fence], [2, first.fence + 1])
    assert.deepEqual(second.headers, first.headers)
    assert.deepEqual(await fail(first), ['stale'])
    assert.deepEqual(await fail(second), ['dead'])
    assert.equal((await channel.checkQueue(carbon)).messageCount, 1)
    const dead = await channel.get(`${prefix}.jobs.${queue}.dead`, { noAck: true })
    assert.ok(dead)
    assert.equal(dead.properties.contentEncoding, 'gzip')
    assert.equal(dead.properties.headers?.['millpond-message'], messageId)
    assert.equal(dead.properties.headers?.tenant, 7)
  })
})
