/** What users see of the RabbitMQ store, beside what all stores have in common. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { connect, type Options } from 'amqplib'
import { type Job, Millpond, type MillpondError } from '../../src/index.ts'
import { LONGEST_DELAY, waitsOf } from '../../src/stores/rabbitmq/waits.ts'
import { isMillpondError } from '../../src/values/errors/errors.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { clear, freshPrefix } from './rabbitmq-fixture.ts'

const URL_ = serverUrl('rabbitmq') ?? ''

/** Ponds of one prefix, closed and cleared away after the test. */
function ponds(t: TestContext, more = ''): { open(): Promise<Millpond>; prefix: string } {
  const prefix = freshPrefix()
  after(t, () => clear(URL_, prefix))
  return {
    prefix,
    async open() {
      const pond = await Millpond.open(`${URL_}?prefix=${prefix}${more}`)
      after(t, () => pond.close())
      return pond
    },
  }
}

/** Messages of a queue of RabbitMQ, taken out of it. */
async function take(queue: string): Promise<{ headers: Record<string, unknown>; body: string }[]> {
  const connection = await connect(URL_)
  const channel = await connection.createChannel()
  const taken: { headers: Record<string, unknown>; body: string }[] = []
  for (;;) {
    const message = await channel.get(queue, { noAck: true })
    if (message === false) break
    taken.push({ headers: message.properties.headers ?? {}, body: message.content.toString() })
  }
  await connection.close()
  return taken
}

async function publish(t: TestContext, queue: string, type: string, messages: [string | Buffer, Options.Publish][]) {
  const connection = await connect(URL_)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(queue, { arguments: { 'x-queue-type': type } })
  for (const [body, options] of messages) channel.sendToQueue(queue, Buffer.from(body), options)
  await channel.waitForConfirms()
  await connection.close()
  after(t, async () => {
    const again = await connect(URL_)
    await (await again.createChannel()).deleteQueue(queue)
    await again.close()
  })
}

/** The shortest wait of a delay, in milliseconds. */
const STEP = 32

describe('RabbitMQ', { skip: missingReason('rabbitmq') }, () => {
  test('a short delay does not wait behind a long one, and no job comes early', async (t) => {
    const pond = await ponds(t).open()
    const queue = pond.queue<number>('q')
    const started: { due: number; early: number }[] = []
    queue.work(async ({ dueAt }) => {
      started.push({ due: dueAt.getTime(), early: dueAt.getTime() - Date.now() })
    })
    await queue.push(60_000, { delay: '1m' })
    for (const delay of [700, 300, 100, 1]) await queue.push(delay, { delay })
    await until(() => started.length === 4, 'the short delays to end')
    // On a busy machine a push may take longer than the delays differ. Two that are due at nearly the same time may change places.
    for (const [at, { due }] of started.entries()) {
      const before = started[at - 1]?.due ?? 0
      assert.ok(due > before - 2 * STEP, `${before - due} ms after one that is due later`)
    }
    for (const { early } of started) assert.ok(early <= 1, `${early} ms early`)
  })

  test('delays are the sum of their steps', () => {
    assert.deepEqual(waitsOf(1), [32])
    assert.deepEqual(waitsOf(1100), [1024, 64, 32])
    assert.equal(waitsOf(LONGEST_DELAY + 1).length, 27)
    for (const delay of [31, 33, 4095, 86_400_000, LONGEST_DELAY]) {
      const sum = waitsOf(delay).reduce((before, each) => before + each)
      assert.ok(sum >= delay && sum < delay + 32, `${delay}: ${sum}`)
    }
  })

  test('a job that comes early after a very long delay goes on for the rest, and no attempt is counted', async (t) => {
    const { open, prefix } = ponds(t)
    const queue = (await open()).queue<number>('q')
    await queue.push(1)
    const connection = await connect(URL_)
    after(t, () => connection.close())
    const channel = await connection.createChannel()
    const pushed = Date.now() - LONGEST_DELAY
    const headers = { 'millpond-place': 1, 'millpond-pushed': pushed, 'millpond-due': Date.now() + 400 }
    channel.sendToQueue(`${prefix}.jobs.q.4`, Buffer.from('2'), { contentType: 'application/json', headers })
    const jobs: Job<number>[] = []
    queue.work(async (job) => {
      jobs.push(job)
    })
    await until(() => jobs.length === 2, 'both jobs are handled')
    // Where the worker comes late, in either order.
    const handled = jobs.map(({ data, attempt }) => [data, attempt]).sort(([a = 0], [b = 0]) => a - b)
    assert.deepEqual(handled, [
      [1, 1],
      [2, 1],
    ])
    assert.ok(jobs.every(({ dueAt }) => dueAt.getTime() <= Date.now()))
  })

  test('failed jobs are tried again, and dead ones lie in a queue of their own with their error', async (t) => {
    const { open, prefix } = ponds(t)
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 3, backoff: { type: 'fixed', base: 10, jitter: 0 } } })
    const attempts: number[] = []
    queue.work(async ({ attempt }) => {
      attempts.push(attempt)
      throw new Error('no such luck')
    })
    await queue.push('a')
    await until(async () => (await queue.stats()).counts.dead === 1, 'the job is dead')
    assert.deepEqual(attempts, [1, 2, 3])
    const [dead] = await take(`${prefix}.jobs.q.dead`)
    assert.equal(dead?.body, '"a"')
    assert.match(String(dead?.headers['millpond-error']), /no such luck/)
  })

  test('a worker hears of a priority that another process is the first to use', async (t) => {
    const { open } = ponds(t)
    const [one, two] = [await open(), await open()]
    const handled: string[] = []
    two.queue<string>('q').work(async ({ data }) => {
      handled.push(data)
    })
    await one.queue<string>('q').push('b')
    await until(() => handled.length === 1, 'the first job is handled')
    await one.queue<string>('q').push('a', { priority: 9 })
    await one.queue<string>('q').push('c', { priority: 0, delay: 1 })
    await until(() => handled.length === 3, 'the other jobs are handled')
    assert.deepEqual(handled, ['b', 'a', 'c'])
    const three = await open()
    assert.equal((await three.queue('q').stats()).counts.waiting, 0)
  })

  test('settings are those of the code; a pause is refused', async (t) => {
    const pond = await ponds(t).open()
    const queue = pond.queue<number>('q', { capacity: 1 })
    await queue.push(1)
    assert.equal((await refusal(queue.push(2))).code, 'QueueFull')
    assert.equal((await refusal(queue.pause())).code, 'NotSupported')
    assert.equal((await refusal(queue.override({ capacity: 5 }))).code, 'NotSupported')
  })

  test('no job is parked behind a long one: others take what one process cannot start', async (t) => {
    const { open } = ponds(t)
    const [one, two] = [await open(), await open()]
    let finish = (): void => undefined
    const long = new Promise<void>((resolve) => {
      finish = resolve
    })
    after(t, () => finish())
    let held = 0
    const hold = (): Promise<void> => {
      held++
      return long
    }
    one.queue<number>('q').work(hold, { concurrency: 1 })
    await one.queue<number>('q').push(0)
    await until(() => held === 1, 'the long job runs')
    for (let job = 1; job <= 20; job++) await one.queue<number>('q').push(job, { priority: job % 10 })
    const handled: number[] = []
    two.queue<number>('q').work(async ({ data }) => {
      handled.push(data)
    })
    await until(() => handled.length === 20, 'the other process handles all others')
    assert.equal(held, 1)
  })

  test('jobs that came for a worker that was closed go to others', async (t) => {
    const { open } = ponds(t)
    const [one, two] = [await open(), await open()]
    const handled: number[] = []
    const worker = one.queue<number>('q').work(async ({ data }) => {
      handled.push(data)
    })
    await one.queue<number>('q').push(0)
    await until(() => handled.length === 1, 'the worker works')
    await worker.close()
    for (let job = 1; job <= 5; job++) await two.queue<number>('q').push(job)
    two.queue<number>('q').work(async ({ data }) => {
      handled.push(data)
    })
    await until(() => handled.length === 6, 'the other process handles all')
    assert.deepEqual(handled.toSorted(), [0, 1, 2, 3, 4, 5])
  })

  test('what it lacks is refused when a queue is defined or called that way', async (t) => {
    const pond = await ponds(t).open()
    const queue = pond.queue<number>('q')
    const isRefused = (error: unknown): boolean => isMillpondError(error, 'NotSupported')
    assert.throws(() => pond.queue('limited', { limits: { running: 1 } }), isRefused)
    const calls = [queue.push(1, { key: 'k' }), pond.job('019b76da-a800-7000-8000-000000000001')]
    for (const call of calls) assert.equal((await refusal(call)).code, 'NotSupported')
  })

  for (const type of ['classic', 'quorum']) {
    test(`messages of other programs, from a ${type} queue`, async (t) => {
      const { open, prefix } = ponds(t, '&foreign=1')
      const name = `invoices-${prefix}`
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
      await publish(t, name, type, [
        [
          '{"n": 1}',
          { contentType: 'application/json', headers: { tenant: 'a', traceparent: trace }, messageId: 'm-1' },
        ],
        [
          '{"n": 2}',
          { contentType: 'application/vnd.shop+json; charset=utf-8', correlationId: 'c', replyTo: 'r', type: 't' },
        ],
        ['hello', { contentType: 'text/plain' }],
        [Buffer.from([0x81, 0xa1, 0x6e, 3]), { contentType: 'application/x-msgpack' }],
        ['raw', {}],
      ])
      const seen: Job<unknown>[] = []
      const pond = await open()
      pond.queue<unknown>(name, { retry: { backoff: { type: 'fixed', base: 1, jitter: 0 } } }).work(async (job) => {
        if (job.attempt === 1 && job.headers?.['message-id'] === 'm-1') throw new Error('try again')
        seen.push(job)
      })
      await until(() => seen.length === 5, 'all messages are handled')
      const again = seen.find(({ attempt }) => attempt === 2)
      assert.deepEqual(again?.data, { n: 1 })
      assert.deepEqual(again?.headers, {
        'content-type': 'application/json',
        'message-id': 'm-1',
        tenant: 'a',
        traceparent: trace,
      })
      assert.equal(again?.trace, trace)
      const [second, third, fourth, fifth] = seen.filter(({ attempt }) => attempt === 1)
      assert.deepEqual(second?.data, { n: 2 })
      assert.equal(second?.headers?.['reply-to'], 'r')
      assert.equal(third?.data, 'hello')
      assert.deepEqual(fourth?.data, { n: 3 })
      assert.deepEqual(fifth?.data, new Uint8Array(Buffer.from('raw')))
      await pond.queue<string>('own').push('x')
      const own: Job<string>[] = []
      pond.queue<string>('own').work(async (job) => {
        own.push(job)
      })
      await until(() => own.length === 1, 'a job of our own')
      assert.equal(own[0]?.headers, null)
    })
  }

  test('lanes: an urgent job starts while others hold all slots but the reserved one', async (t) => {
    const queue = (await ponds(t).open()).queue<string>('q')
    const ends = Promise.withResolvers<void>()
    const started: string[] = []
    for (const data of ['a', 'b', 'c']) await queue.push(data)
    const worker = queue.work(
      (job) => {
        started.push(job.data)
        return ends.promise
      },
      { concurrency: 3, lanes: [{ minPriority: 7, reserve: 1 }] },
    )
    await until(() => worker.load.running === 2, 'the slots that are not reserved are taken')
    await queue.push('urgent', { priority: 7 })
    await until(() => started.length === 3, 'a third job starts')
    assert.deepEqual(started, ['a', 'b', 'urgent'])
    ends.resolve()
    await until(() => started.length === 4, 'the last one starts')
  })

  test('options are checked', async () => {
    for (const query of ['prefix=a.b', 'foreign=2', 'timeout=5', 'heartbeat=0', 'vhost=x']) {
      assert.equal((await refusal(Millpond.open(`${URL_}?${query}`))).code, 'InvalidOption', query)
    }
  })
})

async function refusal(call: Promise<unknown>): Promise<MillpondError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  assert.ok(isMillpondError(error), String(error))
  return error
}
