/** To RabbitMQ and from it: jobs of ours with what RabbitMQ can keep of them, and messages of other programs. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { connect } from 'amqplib'
import { Millpond } from '../../src/index.ts'
import { move } from '../../src/move/index.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { stores } from '../conformance/stores.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { clear, freshPrefix, openRabbitmq } from '../stores/rabbitmq-fixture.ts'
import { after } from '../support/cleaning.ts'
import { newJobs, recordOf } from '../support/jobs.ts'
import { until } from '../support/until.ts'

const URL_ = serverUrl('rabbitmq') ?? ''
const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)

/** A queue of another program, and what publishes to it. */
async function foreign(t: TestContext) {
  const prefix = freshPrefix()
  const queue = `orders-${prefix}`
  const connection = await connect(URL_)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(queue)
  after(t, async () => {
    await channel.deleteQueue(queue)
    await connection.close()
    await clear(URL_, prefix, [queue])
  })
  const publish = async (from: number, count: number): Promise<void> => {
    const properties = { contentType: 'application/json', headers: { tenant: 'a' } }
    for (let n = from; n < from + count; n++) channel.sendToQueue(queue, Buffer.from(`{"n":${n}}`), properties)
    await channel.waitForConfirms()
  }
  return { queue, channel, publish, url: `${URL_}?foreign=1&prefix=${prefix}` }
}

describe('move: rabbitmq', { skip: missingReason('rabbitmq') }, () => {
  test('there and back: attempts, priorities and data are kept, and nothing is left behind', async (t) => {
    const [first, between, last] = [await memory.open(), await openRabbitmq(URL_), await memory.open()]
    for (const { dispose } of [first, between, last]) after(t, dispose)
    const records = Array.from({ length: 60 }, (_, index) =>
      recordOf({ queue: 'q', priority: [4, 0, 9][index % 3] ?? 4, attempts: 7, attempt: index % 2, group: 'g' }),
    )
    await first.store.operations.restore({ records })
    const there = await move(first.store, between.store)
    assert.deepEqual([there.moved, there.left, there.remaining], [60, 0, 0])
    const back = await move(between.store, last.store, { queues: ['q'] })
    assert.deepEqual([back.moved, back.left, back.remaining], [60, 0, 0])
    const found = await last.store.operations.find({ ids: records.map(({ id }) => id) })
    const kept = (all: readonly (typeof records)[number][]) =>
      all.map(({ priority, attempt, attempts, group, data }) => [priority, attempt, attempts, group, data])
    assert.deepEqual(kept(found.flatMap((record) => record ?? [])), kept(records))
  })

  test('messages of other programs become jobs with their headers', async (t) => {
    const [{ queue, url, channel, publish }, target] = [await foreign(t), await memory.open()]
    after(t, target.dispose)
    await publish(0, 20)
    const report = await move(url, target.store, { queues: [queue] })
    assert.equal(report.moved, 20)
    const { jobs } = await target.store.operations.list({ queue, state: 'waiting', limit: 100 })
    const data = '{"headers":{"content-type":"application/json","tenant":"a"},"data":{"n":0}}'
    assert.equal(jobs[0]?.data.body, data)
    assert.equal((await channel.checkQueue(queue)).messageCount, 0)
  })

  test('nobody stops: the worker comes first, then the consumers go, then the producers switch', async (t) => {
    const { queue, url, channel, publish } = await foreign(t)
    const folder = await mkdtemp(join(tmpdir(), 'millpond-'))
    after(t, () => rm(folder, { recursive: true, force: true }))
    const store = `sqlite:${join(folder, 'new.db')}`
    const old: number[] = []
    const consumers = await connect(URL_)
    const consumer = await consumers.createChannel()
    await consumer.prefetch(10)
    await consumer.consume(queue, (message) => {
      // It has begun ten more when it is stopped.
      if (message === null || old.length === 30) return
      old.push(JSON.parse(message.content.toString()).n)
      consumer.ack(message)
    })
    await publish(0, 100)
    await until(() => old.length === 30, 'the old consumer works')

    const pond = await Millpond.open(store)
    after(t, () => pond.close())
    const handled: number[] = []
    pond.queue<{ n: number }>(queue).work(async ({ data }) => {
      handled.push(data.n)
    })
    const stop = new AbortController()
    const options = { queues: [queue], follow: true, headers: false, signal: stop.signal }
    const moving = move(url, store, options)
    await until(() => handled.length > 0, 'jobs are moved')
    await consumers.close()
    await publish(100, 50)
    await until(() => handled.length === 120, 'what the old consumer left is handled')
    for (let n = 150; n < 160; n++) await pond.queue<{ n: number }>(queue).push({ n })
    await until(() => handled.length === 130, 'what is pushed to the new store is handled')
    stop.abort()
    assert.equal((await moving).stopped, true)
    const all = [...old, ...handled].toSorted((a, b) => a - b)
    assert.deepEqual(all, [...Array(160).keys()])
    assert.equal((await channel.checkQueue(queue)).messageCount, 0)
  })

  test('a move that is stopped leaves the messages of others in their queue', async (t) => {
    const [{ queue, url, channel, publish }, target] = [await foreign(t), await memory.open()]
    after(t, target.dispose)
    await publish(0, 3000)
    const stop = new AbortController()
    const moving = move(url, target.store, { queues: [queue], follow: true, signal: stop.signal })
    const arrived = async () => (await target.store.operations.stats({ queue }))[0]?.counts.waiting ?? 0
    await until(async () => (await arrived()) > 0, 'messages are moved')
    stop.abort()
    const report = await moving
    assert.equal(await arrived(), report.moved)
    const left = async () => (await channel.checkQueue(queue)).messageCount
    await until(async () => (await left()) === 3000 - report.moved, 'all others are in their queue')
  })

  test('queues must be named, since RabbitMQ lists none', async (t) => {
    const [source, target] = [await openRabbitmq(URL_), await memory.open()]
    for (const { dispose } of [source, target]) after(t, dispose)
    await assert.rejects(
      move(source.store, target.store),
      (error) => isMillpondError(error, 'InvalidOption') && /queues/.test(error.message),
    )
    await source.store.operations.push({ jobs: newJobs(3) })
    assert.equal((await move(source.store, target.store)).moved, 3)
  })
})
