/** Spans and metrics, as the SDK of OpenTelemetry gets them. */
import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { Millpond } from '../../src/index.ts'
import { instrument } from '../../src/opentelemetry/index.ts'
import { onEachStore } from '../api/suite.ts'
import { until } from '../support/until.ts'
import { millis, sdk } from './fixture.ts'

const attributes = (operation: string) => ({
  'messaging.system': 'millpond',
  'messaging.destination.name': 'mail',
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
})

onEachStore('OpenTelemetry', {
  'push, wait and run are one trace, and the handler runs in it': async ({ open }) => {
    const telemetry = sdk()
    const end = instrument(telemetry.providers)
    const pond = await open()
    try {
      const queue = pond.queue<number>('mail')
      const { tracer } = telemetry
      const root = tracer.startSpan('request')
      const { id } = await context.with(trace.setSpan(context.active(), root), () => queue.push(1))
      root.end()
      queue.work(async () => {
        await new Promise((resolve) => setImmediate(resolve))
        tracer.startSpan('inside').end()
      })
      await until(() => telemetry.named('process mail').length === 1)
      const [send] = telemetry.named('send mail')
      const [wait] = telemetry.named('wait mail')
      const [run] = telemetry.named('process mail')
      const [inside] = telemetry.named('inside')
      assert.ok(send && wait && run && inside)
      const { traceId, spanId } = send.spanContext()
      assert.equal(send.parentSpanContext?.spanId, root.spanContext().spanId)
      for (const span of [wait, run, inside]) assert.equal(span.spanContext().traceId, traceId)
      assert.deepEqual([wait.parentSpanContext?.spanId, run.parentSpanContext?.spanId], [spanId, spanId])
      assert.equal(inside.parentSpanContext?.spanId, run.spanContext().spanId)
      assert.deepEqual([send.kind, wait.kind, run.kind], [SpanKind.PRODUCER, SpanKind.INTERNAL, SpanKind.CONSUMER])
      assert.deepEqual(send.attributes, { ...attributes('send'), 'messaging.message.id': id })
      const facts = { 'messaging.message.id': id, 'millpond.job.attempt': 1 }
      assert.deepEqual(run.attributes, { ...attributes('process'), ...facts })
      assert.ok(millis(wait.endTime) >= millis(wait.startTime))
      assert.match((await pond.job(id))?.trace ?? '', new RegExp(`^00-${traceId}-${spanId}-01$`))
    } finally {
      end()
      await telemetry.end()
    }
  },
})

/** A pond in memory, instrumented until the test ends. */
async function traced(check: (telemetry: ReturnType<typeof sdk>, pond: Millpond) => Promise<void>): Promise<void> {
  const telemetry = sdk()
  const pond = await Millpond.open('memory:')
  const end = instrument({ ...telemetry.providers, pond })
  try {
    await check(telemetry, pond)
  } finally {
    await pond.close({ timeout: 100 })
    end()
    await telemetry.end()
  }
}

test('a handler for batches has one span, with links to the traces of its jobs', () =>
  traced(async (telemetry, pond) => {
    const queue = pond.queue<number>('mail')
    await queue.pushMany([1, 2])
    await queue.push(3)
    queue.work(() => {}, { batch: { max: 3, within: '5s' } })
    await until(() => telemetry.named('process mail').length === 1)
    const [many, one] = telemetry.named('send mail')
    const [run] = telemetry.named('process mail')
    assert.ok(many && one && run)
    assert.equal(many.attributes['messaging.batch.message_count'], 2)
    assert.equal(run.attributes['messaging.batch.message_count'], 3)
    assert.equal(run.parentSpanContext, undefined)
    const spans = run.links.map(({ context: { spanId } }) => spanId)
    assert.deepEqual(
      spans,
      [many, many, one].map((span) => span.spanContext().spanId),
    )
    assert.equal(telemetry.named('wait mail').length, 3)
  }))

test('failures have the code of the error, and nothing of its message', () =>
  traced(async (telemetry, pond) => {
    pond.on('dead', () => {})
    const queue = pond.queue<string>('mail', { retry: { attempts: 1 }, capacity: 1 })
    await queue.push('s3cret')
    await assert.rejects(queue.push('second'), { code: 'QueueFull' })
    queue.work(({ data }) => {
      throw new Error(data)
    })
    await until(() => telemetry.named('process mail').length === 1)
    const [run] = telemetry.named('process mail')
    const refused = telemetry.named('send mail')[1]
    assert.deepEqual([run?.attributes['error.type'], run?.status.code], ['HandlerFailed', SpanStatusCode.ERROR])
    assert.deepEqual([refused?.attributes['error.type'], refused?.status.code], ['QueueFull', SpanStatusCode.ERROR])
    const shown = JSON.stringify(
      telemetry.spans().map(({ name, attributes, status, events }) => [name, attributes, status, events]),
    )
    assert.ok(!shown.includes('s3cret'))
  }))

test('an attempt that is stopped ends its span once', () =>
  traced(async (telemetry, pond) => {
    const queue = pond.queue<number>('mail', { retry: { attempts: 1 } })
    pond.on('dead', () => {})
    const { id } = await queue.push(1, { timeout: 20 })
    const done = Promise.withResolvers<void>()
    queue.work(() => done.promise)
    await until(async () => (await pond.job(id))?.state === 'dead')
    done.resolve()
    await until(() => telemetry.named('process mail').length === 1)
    assert.equal(telemetry.named('process mail')[0]?.attributes['error.type'], 'TimedOut')
  }))

test('the trace that a push is given goes on, and one that is none of W3C stays as it is', () =>
  traced(async (telemetry, pond) => {
    const queue = pond.queue<number>('mail')
    const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const { id } = await queue.push(1, { trace: given })
    const [send] = telemetry.named('send mail')
    assert.equal(send?.spanContext().traceId, '0af7651916cd43dd8448eb211c80319c')
    assert.equal(send?.parentSpanContext?.spanId, 'b7ad6b7169203331')
    assert.match((await pond.job(id))?.trace ?? '', /^00-0af7651916cd43dd8448eb211c80319c-(?!b7ad)/)
    const other = await queue.push(2, { trace: 'request 7' })
    assert.equal((await pond.job(other.id))?.trace, 'request 7')
  }))

test('metrics by the conventions for messaging, and of the queues', () =>
  traced(async (telemetry, pond) => {
    const queue = pond.queue<number>('mail')
    await queue.pushMany([1, 2, 3])
    const worker = queue.work(() => {})
    await until(() => telemetry.named('process mail').length === 3)
    await worker.close()
    await queue.push(4)
    const metrics = await telemetry.metrics()
    const sum = (name: string) => (metrics.get(name) ?? []).reduce((all, { value }) => all + Number(value), 0)
    const count = (name: string) =>
      (metrics.get(name) ?? []).reduce((all, { value }) => all + (value as { count: number }).count, 0)
    assert.equal(sum('messaging.client.sent.messages'), 4)
    assert.equal(sum('messaging.client.consumed.messages'), 3)
    assert.equal(count('messaging.client.operation.duration'), 2)
    assert.equal(count('messaging.process.duration'), 3)
    assert.equal(count('millpond.job.wait'), 3)
    assert.ok(count('millpond.store.operation.duration') > 0)
    const waiting = metrics.get('millpond.jobs')?.find(({ attributes: { state } }) => state === 'waiting')
    assert.deepEqual([waiting?.value, waiting?.attributes['messaging.destination.name']], [1, 'mail'])
  }))

test('without it, and after its end, nobody listens', async () => {
  const names = ['millpond:push', 'millpond:run', 'millpond:operation']
  const heard = () => names.map((name) => channel(name).hasSubscribers)
  assert.deepEqual(heard(), [false, false, false])
  instrument()()
  assert.deepEqual(heard(), [false, false, false])
  assert.throws(() => instrument({ tracer: 1 } as object), { code: 'InvalidOption' })
})
