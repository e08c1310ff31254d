/** To RabbitMQ and from it: jobs of ours with what RabbitMQ can keep of them, and messages of other programs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connect } from 'amqplib'
import { move } from '../../src/move/index.ts'
import { open } from '../../src/stores/rabbitmq/index.ts'
import { isMillpondError } from '../../src/values/errors.ts'
import { stores } from '../conformance/stores.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { clear, freshPrefix, openRabbitmq } from '../stores/rabbitmq-fixture.ts'
import { after } from '../support/cleaning.ts'
import { newJobs, recordOf } from '../support/jobs.ts'

const URL_ = serverUrl('rabbitmq') ?? ''
const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)

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
    const [prefix, target] = [freshPrefix(), await memory.open()]
    const queue = `orders-${prefix}`
    const source = await open(`${URL_}?foreign=1`, { prefix })
    const connection = await connect(URL_)
    const channel = await connection.createConfirmChannel()
    after(t, async () => {
      await channel.deleteQueue(queue)
      await connection.close()
      await clear(URL_, prefix, [queue])
    })
    after(t, target.dispose)
    after(t, () => source.close())
    await channel.assertQueue(queue)
    for (let n = 0; n < 20; n++) {
      const properties = { contentType: 'application/json', headers: { tenant: 'a' } }
      channel.sendToQueue(queue, Buffer.from(`{"n":${n}}`), properties)
    }
    await channel.waitForConfirms()
    const report = await move(source, target.store, { queues: [queue] })
    assert.equal(report.moved, 20)
    const { jobs } = await target.store.operations.list({ queue, state: 'waiting', limit: 100 })
    const data = '{"headers":{"content-type":"application/json","tenant":"a"},"data":{"n":0}}'
    assert.equal(jobs[0]?.data.body, data)
    assert.equal((await channel.checkQueue(queue)).messageCount, 0)
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
