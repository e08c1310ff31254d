/** SIGTERM to a process opened with `signals: true`, under load: what runs is finished, what waits is given back, then it goes. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { countsOf, faultsOf, liveIn, look, start } from './harness.ts'
import type { ProducerConfig } from './roles/producer.ts'
import type { WorkerConfig } from './roles/worker.ts'

const QUEUE = 'jobs'

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`a worker under ${signal} finishes what runs, gives back the rest, and ends with 0`, async (t) => {
    const folder = scratch(t)
    const path = join(folder, 'app.db')
    const log = join(folder, 'log')
    const url = `sqlite:${path}`
    const pond = await Millpond.open(url)
    after(t, () => pond.close())
    const jobs = pond.queue<number>(QUEUE)
    const pushed = await jobs.pushMany(Array.from({ length: 3000 }, (_, i) => i))

    const config: WorkerConfig = {
      url,
      queue: QUEUE,
      options: { lease: '30s' },
      // The window is so long that a buffer comes back for no other reason than the end.
      work: { concurrency: 8, window: '5s' },
      log,
      pause: 30,
      signals: true,
    }
    const worker = start(t, 'worker', config)
    await worker.hear('busy')
    let buffered = 0
    await until(async () => {
      const load = await worker.ask('load')
      buffered = Number(load.buffered)
      return load.running === 8 && buffered > 50
    }, 'slots and buffer are full')
    worker.kill(signal)
    assert.deepEqual(await worker.exited, { code: 0, signal: null })

    const lines = readFileSync(log, 'utf8').split('\n')
    const idsOf = (what: string) => new Set(lines.filter((line) => line.startsWith(what)).map((l) => l.split(' ')[1]))
    const [started, effects] = [idsOf('start'), idsOf('effect')]
    assert.deepEqual(effects, started)

    const rows = look(path, 'select id, state, attempt, fence from millpond_jobs')
    assert.equal(rows.length, pushed.length)
    const done = rows.filter(({ state }) => state === 'done')
    const back = rows.filter(({ state, fence }) => state === 'waiting' && fence !== 0)
    assert.deepEqual(new Set(done.map(({ id }) => id)), started)
    assert.ok(done.every(({ attempt }) => attempt === 1))
    assert.ok(back.length > 0, `${buffered} were buffered shortly before`)
    assert.ok(back.every(({ attempt }) => attempt === 0))
    const { kept, real } = countsOf(path, QUEUE)
    assert.deepEqual(kept, real)
    assert.equal(real.done + real.waiting, pushed.length)

    const next = start(t, 'worker', { ...config, pause: 0 })
    await until(() => liveIn(path, QUEUE) === 0, 'the next worker has done the rest')
    next.kill('SIGTERM')
    await next.exited
    const [finished] = look(path, `select count(*) as n from millpond_jobs where state = 'done' and attempt = 1`)
    assert.equal(finished?.n, pushed.length)
  })
}

test('a producer under SIGTERM has stored all that it was told is stored', async (t) => {
  const folder = scratch(t)
  const path = join(folder, 'app.db')
  const log = join(folder, 'acknowledged')
  const config: ProducerConfig = { url: `sqlite:${path}`, queue: QUEUE, log, inFlight: 24, signals: true }
  const producer = start(t, 'producer', config)
  const acknowledged = () => readFileSync(log, 'utf8').split('\n').filter(Boolean)
  await producer.hear('busy')
  await until(() => acknowledged().length > 500, 'some hundreds are pushed')
  producer.kill('SIGTERM')
  assert.deepEqual(await producer.exited, { code: 0, signal: null })
  const stored = new Set(look(path, 'select id from millpond_jobs').map(({ id }) => id))
  assert.deepEqual(
    acknowledged().filter((id) => !stored.has(id)),
    [],
  )
  assert.deepEqual(producer.said('trouble'), [])
  assert.deepEqual(faultsOf(path), [])
})
