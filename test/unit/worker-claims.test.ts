/** How often a worker claims, by a store that counts. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { PondEmitter } from '../../src/events.ts'
import type { Claimed } from '../../src/store.ts'
import { Worker } from '../../src/worker.ts'
import { claimedJob, storeOf, until } from './suite.ts'

/** A worker whose every claim takes 3 ms, by a clock that stands still but for `pass`. Its handlers run until `finish`. */
async function claiming(t: TestContext, concurrency: number, ready: () => Promise<void> | undefined = () => undefined) {
  let time = 1_000
  t.mock.method(performance, 'now', () => time)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked: ((claimed: Claimed) => void)[] = []
  const log: string[] = []
  let quiet: boolean | undefined
  const store = storeOf({
    claim: (request) => {
      quiet = request.quiet
      return new Promise((resolve) => asked.push(resolve))
    },
    complete: async (_, completions) => completions.map(() => 'ok' as const),
    release: async (_, holds) => {
      log.push(...holds.map(({ id }) => `release ${id}`))
      return holds.map(() => 'ok' as const)
    },
    extend: async (_queue, _lease, extensions) => {
      log.push(...extensions.map(({ id }) => `extend ${id}`))
      return extensions.map(() => 'cancelled' as const)
    },
    record: async () => {},
  })
  const { promise: end, resolve: finish } = Promise.withResolvers<void>()
  const settings = { queue: 'q', concurrency, lease: 30_000, window: 50, transaction: false, maxPayload: 1_000 }
  const worker = new Worker(
    store,
    { ...settings, schema: undefined, backoff: () => 0 },
    (job, ctx) => {
      log.push(`start ${job.id}`)
      ctx.signal.addEventListener('abort', () => log.push(`abort ${job.id}`))
      return end
    },
    new PondEmitter(),
    ready,
    { removeWorker() {}, completed() {} },
  )
  const turns = async () => {
    for (let i = 0; i < 5; i++) await turn()
  }
  t.after(async () => {
    t.mock.timers.reset()
    finish()
    const closed = worker.close()
    await turns()
    asked.at(-1)?.({ now: 0, jobs: [] })
    await closed
  })
  if (ready() === undefined) await until(() => asked.length === 1)
  return {
    worker,
    log,
    claims: () => asked.length,
    /** Whether the last claim asked for no bell. */
    quiet: () => quiet,
    answer: async (ids: string[]) => {
      time += 3
      asked.at(-1)?.({ now: 0, jobs: ids.map((id) => claimedJob(id)) })
      await turns()
    },
    wake: async () => {
      worker.wake()
      await turns()
    },
    pass: async (ms: number) => {
      time += ms
      t.mock.timers.tick(ms)
      await turns()
    },
    finish: async () => {
      finish()
      await turns()
    },
  }
}

const ids = (count: number, letter: string) => Array.from({ length: count }, (_, n) => `${letter}${n}`)

test('a busy worker whose claim came back short waits a moment before the next, an idle one does not', async (t) => {
  const { claims, answer, wake, pass, finish } = await claiming(t, 10)
  await answer([])
  await wake()
  assert.equal(claims(), 2, 'nothing runs: at once')
  await answer(['a'])
  for (let i = 0; i < 3; i++) await wake()
  assert.equal(claims(), 2, 'a handler runs')
  await pass(6)
  assert.equal(claims(), 3, 'twice as long as the claim took')
  await answer(ids(9, 'b'))
  await finish()
  assert.equal(claims(), 4, 'the last claim was not short: at once')
})

test('a short claim that brought many is followed by the longest pause, so that the next brings more', async (t) => {
  const { claims, answer, wake, pass } = await claiming(t, 100)
  await answer(ids(31, 'a'))
  await wake()
  await pass(6)
  assert.equal(claims(), 2, 'not many yet')
  await answer(ids(32, 'b'))
  await wake()
  await pass(9)
  assert.equal(claims(), 2)
  await pass(1)
  assert.equal(claims(), 3)
})

test('while many come, the next claim follows by itself and asks for no bell; when few come, one asks for it', async (t) => {
  const { claims, quiet, answer, pass, wake } = await claiming(t, 200)
  assert.equal(quiet(), false)
  await answer(ids(40, 'a'))
  await pass(10)
  assert.deepEqual([claims(), quiet()], [2, true], 'nobody rang')
  await answer(ids(32, 'b'))
  await pass(10)
  assert.deepEqual([claims(), quiet()], [3, true])
  await answer(ids(31, 'c'))
  assert.equal(claims(), 3, 'not at once')
  await pass(6)
  assert.deepEqual([claims(), quiet()], [4, false], 'nobody would have rung')
  await answer(ids(31, 'd'))
  await pass(500)
  assert.equal(claims(), 4, 'somebody will')
  await wake()
  assert.deepEqual([claims(), quiet()], [5, false])
})

test('a claim that came back empty without a bell is followed by one with', async (t) => {
  const { claims, quiet, answer, pass, finish } = await claiming(t, 200)
  await answer(ids(40, 'a'))
  await pass(10)
  await finish()
  assert.deepEqual([claims(), quiet()], [2, true])
  await answer([])
  assert.deepEqual([claims(), quiet()], [3, false], 'at once, as nothing runs')
  await answer([])
  await pass(500)
  assert.equal(claims(), 3)
})

test('what arrives when its lease may be over is given back, not started and not let go', async (t) => {
  const { answer, pass, log } = await claiming(t, 10)
  await pass(30_000)
  await answer(['late'])
  assert.deepEqual(log, ['release late'])
})

test('the lease is counted from the claim, not from when it was wanted', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let configured = false
  const { answer, pass, wake, claims, log } = await claiming(t, 10, () => (configured ? undefined : promise))
  await wake()
  await pass(30_000)
  assert.equal(claims(), 0)
  configured = true
  resolve()
  await until(() => claims() === 1)
  await answer(['timely'])
  assert.deepEqual(log, ['start timely'])
})

test('a job cancelled while it is claimed ahead is not started; one cancelled during its claim is aborted at once', async (t) => {
  const { worker, answer, wake, log } = await claiming(t, 2)
  worker.checkCancelled(['a'])
  await answer(['a', 'b'])
  assert.deepEqual(log, ['start a', 'start b', 'extend a', 'extend b', 'abort a', 'abort b'])
  // That claim alone: nobody was cancelled since.
  await wake()
  await answer(['c'])
  assert.equal(log.filter((line) => line.startsWith('extend')).length, 2)
})
