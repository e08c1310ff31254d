/** From pg-boss: what its own library has stored, while its workers run. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { move } from '../../src/move/index.ts'
import { stores } from '../conformance/stores.ts'
import { missingReason, serverUrl } from '../servers/shared.ts'
import { dropSchema, newSchema } from '../stores/postgres-fixture.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { labMissing, loadPgBoss } from './rivals.ts'

const skip = labMissing || missingReason('postgres')
const memory = stores.find(({ name }) => name === 'memory')
assert.ok(memory)

test('created, retried and failed jobs, while its workers run', { skip }, async (t) => {
  const { PgBoss } = loadPgBoss()
  const url = serverUrl('postgres') ?? ''
  const schema = newSchema()
  const boss = new PgBoss({ connectionString: url, schema, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  after(t, async () => {
    await boss.stop({ graceful: false })
    await dropSchema(schema)
  })
  const source = `pgboss+${url}?schema=${schema}`
  await boss.createQueue('emails', { retryLimit: 1, retryDelay: 3600 })
  await boss.createQueue('unique', { policy: 'short' })
  for (let n = 0; n < 2; n++) {
    // Once it is to be tried again, in an hour; once it is failed for good.
    await boss.send('emails', { n }, { retryLimit: n })
    const [job] = await boss.fetch('emails')
    assert.ok(job)
    await boss.fail('emails', job.id, new RangeError('no mail server'))
  }
  await boss.send('emails', { big: 1 }, { priority: 2, expireInSeconds: 60 })
  await boss.send('emails', ['later'], { startAfter: 3600 })
  await boss.send('unique', null, { singletonKey: 'only' })

  const { store, dispose } = await memory.open()
  after(t, dispose)
  const report = await move(source, store)
  assert.deepEqual([report.moved, report.left, report.remaining], [5, 0, 0])
  const all = async (state: 'waiting' | 'scheduled' | 'dead', queue = 'emails') =>
    (await store.operations.list({ queue, state, limit: 10 })).jobs
  const [waiting] = await all('waiting')
  assert.deepEqual([waiting?.priority, waiting?.timeout, waiting?.data.body], [6, 60_000, '{"big": 1}'])
  const [retry, later] = await all('scheduled')
  assert.deepEqual([retry?.attempt, retry?.attempts, retry?.error?.message], [1, 2, 'no mail server'])
  assert.ok(later && Math.abs(later.dueAt - later.pushedAt - 3_600_000) < 60_000 && later.data.body === '["later"]')
  const [dead] = await all('dead')
  assert.deepEqual([dead?.attempt, dead?.attempts, dead?.error?.name], [1, 1, 'RangeError'])
  assert.equal((await all('waiting', 'unique'))[0]?.key, 'only')

  const COUNT = 2000
  await boss.createQueue('numbers')
  await boss.insert(
    'numbers',
    Array.from({ length: COUNT }, (_, n) => ({ data: { n } })),
  )
  const runs: number[] = []
  await boss.work('numbers', { batchSize: 10, pollingIntervalSeconds: 0.5 }, async (jobs) => {
    runs.push(...jobs.map(({ data }) => data.n))
  })
  await until(() => runs.length > 0, 'the worker to run')
  await move(source, store, { queues: ['numbers'] })
  const moved = (await all('waiting', 'numbers')).length
  assert.ok(moved > 0)
  const { jobs } = await store.operations.list({ queue: 'numbers', state: 'waiting', limit: COUNT })
  const numbers = jobs.map(({ data }) => Number(JSON.parse(String(data.body)).n))
  await until(() => runs.length + numbers.length >= COUNT, 'the worker to have run the rest')
  assert.deepEqual(
    [...runs, ...numbers].sort((a, b) => a - b),
    Array.from({ length: COUNT }, (_, n) => n),
  )
})

test('a database without pg-boss is refused', { skip }, async () => {
  const { store, dispose } = await memory.open()
  const url = `pgboss+${serverUrl('postgres')}?schema=nowhere`
  await assert.rejects(move(url, store), { code: 'NotSupported' })
  await dispose()
})
