/** From BullMQ: what its own library has stored, while its workers run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import { MillpondError } from '../../src/values/errors/errors.ts'
import { stores } from '../conformance/stores.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { labMissing, loadBullMQ } from './rivals.ts'

const skip = labMissing || missingReason('redis')
const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)

const address = new URL(serverUrl('redis') ?? 'redis://x')
const connection = { host: address.hostname, port: Number(address.port) }
const prefix = `bull-${process.pid}`
const source = `bullmq+${address}?prefix=${prefix}`

test('waiting, prioritized, delayed and failed jobs; flows stay', { skip }, async (t) => {
  const { Queue, Worker } = loadBullMQ()
  const queue = new Queue('emails', { connection, prefix })
  after(t, async () => {
    await queue.obliterate({ force: true })
    await queue.close()
  })
  const failing = await queue.add('welcome', { big: 1 }, { attempts: 2, jobId: 'own-id' })
  const worker = new Worker('emails', () => Promise.reject(new TypeError('no mail server')), { connection, prefix })
  const failed = Promise.withResolvers<void>()
  let failures = 0
  worker.on('failed', () => ++failures === 2 && failed.resolve())
  await failed.promise
  await worker.close()
  assert.equal(failing.id, 'own-id')
  await queue.add('plain', { to: 'ada' })
  await queue.add('urgent', 2, { priority: 1 })
  await queue.add('later', null, { delay: 3_600_000, attempts: 3, deduplication: { id: 'once' } })
  await queue.setGlobalConcurrency(7)

  const { store, dispose } = await memory.open()
  after(t, dispose)
  const dry = await move(source, store, { dryRun: true, queues: ['emails'] })
  assert.deepEqual(dry.queues[0]?.found, {
    blocked: 0,
    waiting: 2,
    scheduled: 1,
    running: 0,
    dead: 1,
    done: 0,
    cancelled: 0,
  })
  const report = await move(source, store, { queues: ['emails'] })
  assert.deepEqual([report.moved, report.repeated, report.left, report.remaining], [4, 0, 0, 0])

  const all = async (state: 'waiting' | 'scheduled' | 'dead') =>
    (await store.operations.list({ queue: 'emails', state, limit: 10 })).jobs
  const waiting = await all('waiting')
  assert.deepEqual(
    waiting.map(({ priority, attempts, data }) => [priority, attempts, data.body]),
    [
      [4, 1, '{"name":"plain","data":{"to":"ada"}}'],
      [3, 1, '{"name":"urgent","data":2}'],
    ],
  )
  const [later] = await all('scheduled')
  assert.ok(later && later.dueAt === later.pushedAt + 3_600_000)
  assert.deepEqual([later.key, later.attempts, later.data.body], ['once', 3, '{"name":"later","data":null}'])
  const [dead] = await all('dead')
  assert.ok(dead?.finishedAt && dead.startedAt)
  assert.deepEqual([dead.attempt, dead.attempts, dead.error?.message], [2, 2, 'no mail server'])
  assert.match(dead.error?.stack ?? '', /TypeError/)
  assert.equal((await store.operations.settings({ queue: 'emails' }))?.values.running, 7)
  // Nothing of them is left, the key of the deduplication included.
  assert.deepEqual(await queue.getJobCounts('wait', 'prioritized', 'delayed', 'failed'), {
    ...{ wait: 0, prioritized: 0, delayed: 0, failed: 0 },
  })
  await queue.add('later', null, { delay: 3_600_000, deduplication: { id: 'once' } })
  assert.equal((await queue.getJobCounts('delayed')).delayed, 1)
})

test('while its workers run, and moves end in the middle: each job is run there or moved, once', {
  skip,
}, async (t) => {
  const { Queue, Worker } = loadBullMQ()
  const COUNT = 4000
  const queue = new Queue('numbers', { connection, prefix })
  await queue.addBulk(Array.from({ length: COUNT }, (_, n) => ({ name: 'n', data: n })))
  const runs: number[] = []
  const worker = new Worker('numbers', async ({ data }) => runs.push(data), { connection, prefix, concurrency: 5 })
  after(t, async () => {
    await worker.close()
    await queue.obliterate({ force: true })
    await queue.close()
  })
  const { store, dispose } = await memory.open()
  after(t, dispose)
  await until(() => runs.length > 0, 'the worker to run')
  // The target stores a batch, and the move hears nothing of it: what it had taken is left for the next one.
  const { restore } = store.operations
  let batches = 0
  const broken: typeof restore = async (input) => {
    const outcomes = await restore(input)
    if (++batches % 2 === 0) throw new MillpondError('StoreCorrupt', 'killed')
    return outcomes
  }
  const options = { queues: ['numbers'] }
  for (let run = 0; run < 2; run++) {
    await assert.rejects(
      move(source, { ...store, operations: { ...store.operations, restore: broken } }, options),
      /killed/,
    )
  }
  const report = await move(source, store, options)
  assert.ok(report.repeated > 0)
  const { jobs } = await store.operations.list({ queue: 'numbers', state: 'waiting', limit: COUNT })
  const moved = jobs.map(({ data }) => Number(JSON.parse(String(data.body)).data))
  assert.deepEqual(
    [...runs, ...moved].sort((a, b) => a - b),
    Array.from({ length: COUNT }, (_, n) => n),
  )
  assert.ok(moved.length > 0)
})
