/** Another process holds the write lock of the file. */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type TestContext, test } from 'node:test'
import { isMillpondError, Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { type Child, countsOf, liveIn, look, settles, start } from './harness.ts'
import type { LockerConfig } from './roles/locker.ts'

const QUEUE = 'jobs'

interface Scene {
  path: string
  pond: Millpond
  /** Takes and gives back the lock when asked to. */
  locker: Child
}

async function scene(t: TestContext, busyTimeout: number): Promise<Scene> {
  const path = join(scratch(t), 'app.db')
  const pond = await Millpond.open(`sqlite:${path}`, { busyTimeout })
  after(t, () => pond.close({ timeout: 100 }))
  const config: LockerConfig = { path }
  return { path, pond, locker: start(t, 'locker', config) }
}

const isBusy = (error: unknown) => isMillpondError(error, 'StoreBusy') && error.retryable

test('a push that cannot get the lock is StoreBusy, retryable, and has stored nothing', async (t) => {
  const { path, pond, locker } = await scene(t, 200)
  const jobs = pond.queue<number>(QUEUE)
  await jobs.push(0)
  await locker.ask('lock')
  const refused = await settles('pushes', Promise.allSettled(Array.from({ length: 30 }, (_, i) => jobs.push(i))))
  for (const outcome of refused) assert.ok(outcome.status === 'rejected' && isBusy(outcome.reason))
  await assert.rejects(jobs.pushMany([1, 2, 3]), (error) => isBusy(error) && error instanceof Error)
  await assert.rejects(jobs.pause(), isBusy)
  // Reading needs no lock.
  assert.equal((await jobs.stats()).counts.waiting, 1)
  assert.equal((await jobs.jobs('waiting')).length, 1)

  await locker.ask('unlock')
  assert.equal(look(path, 'select count(*) as n from millpond_jobs')[0]?.n, 1)
  await jobs.push(1)
  const { kept, real } = countsOf(path, QUEUE)
  assert.deepEqual(kept, real)
  assert.equal(real.waiting, 2)
})

test('a push waits for a lock that is given back in time', async (t) => {
  const { path, pond, locker } = await scene(t, 30_000)
  const hasty = await Millpond.open(`sqlite:${path}`, { busyTimeout: 200 })
  after(t, () => hasty.close())
  const jobs = pond.queue<number>(QUEUE)
  await locker.ask('lock')
  let settled = false
  const pushing = jobs.push(1).finally(() => {
    settled = true
  })
  await assert.rejects(hasty.queue<number>(QUEUE).push(2), isBusy)
  assert.equal(settled, false)
  await locker.ask('unlock')
  assert.equal((await settles('the push', pushing)).existing, false)
})

test('a lock held by another process does not hold up the event loop', async (t) => {
  const timeout = 1500
  const { pond, locker } = await scene(t, timeout)
  const jobs = pond.queue<number>(QUEUE)
  await jobs.push(0)
  await locker.ask('lock')
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  let ticks = 0
  const ticking = setInterval(() => ticks++, 5)
  // Only what lies between two ticks is measured.
  await until(() => ticks > 3, 'the loop ticks')
  ticks = 0
  await assert.rejects(jobs.push(1), isBusy)
  clearInterval(ticking)
  delay.disable()
  // Waiting here would have stopped the loop for all of the timeout. The bounds leave room for a machine that has other work.
  assert.ok(delay.max / 1e6 < timeout / 3, `the event loop stood still for ${delay.max / 1e6} ms`)
  assert.ok(ticks > 30, `the event loop turned ${ticks} times`)
  t.diagnostic(`longest tick of the event loop: ${(delay.max / 1e6).toFixed(1)} ms of ${timeout} ms`)
})

for (const transaction of [false, true]) {
  const mode = transaction ? 'transaction: true' : 'plain'
  test(`${mode}: claims and completions met by a lock are tried again, and go through`, async (t) => {
    const { path, pond, locker } = await scene(t, 100)
    look(path, 'create table effects (id text)')
    const troubles: string[] = []
    pond.on('error', (error) => troubles.push(error.code))
    const stale: string[] = []
    pond.on('stale', ({ id }) => stale.push(id))
    const jobs = pond.queue<number>(QUEUE, { lease: '1m', retry: { backoff: () => 0 } })
    const pushed = await jobs.pushMany(Array.from({ length: 12 }, (_, i) => i))

    const gate = Promise.withResolvers<void>()
    let began = 0
    const effects: string[] = []
    const worker = jobs.work(
      async ({ id }, ctx) => {
        began++
        await gate.promise
        if (transaction) await ctx.tx('insert into effects (id) values (?)', [id])
        else effects.push(id)
      },
      { concurrency: 4, transaction },
    )
    await until(() => began === 4, 'the first ones run')
    await locker.ask('lock')
    gate.resolve()
    await until(() => troubles.length >= 3, 'the store was busy several times')
    assert.deepEqual(new Set(troubles), new Set(['StoreBusy']))
    assert.equal(liveIn(path, QUEUE), pushed.length)

    await locker.ask('unlock')
    await until(() => liveIn(path, QUEUE) === 0, 'all is done')
    await worker.close()
    const applied = transaction ? look(path, 'select id from effects').map(({ id }) => String(id)) : effects
    assert.deepEqual(applied.toSorted(), pushed.map(({ id }) => id).toSorted())
    assert.deepEqual(stale, [])
    const { kept, real } = countsOf(path, QUEUE)
    assert.deepEqual(kept, real)
    assert.equal(real.done, pushed.length)
  })
}
