/** How often a worker claims, by a store that counts. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { PondEmitter } from '../../src/values/jobs/events.ts'
import type { Job } from '../../src/values/jobs/job.ts'
import type { Claimed } from '../../src/values/jobs/records.ts'
import type { Context } from '../../src/worker/context.ts'
import { Lanes } from '../../src/worker/lanes.ts'
import { Worker } from '../../src/worker/worker.ts'
import { until } from '../support/until.ts'
import { claimedJob, storeOf } from './suite.ts'

/** A worker whose every claim takes 3 ms, by a clock that stands still but for `pass`. Its handlers run until `finish`. */
async function claiming(
  t: TestContext,
  concurrency: number,
  ready: () => Promise<void> | undefined = () => undefined,
  lanes?: Lanes,
) {
  let time = 1_000
  t.mock.method(performance, 'now', () => time)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked: ((claimed: Claimed | Promise<Claimed>) => void)[] = []
  const wanted: string[] = []
  const log: string[] = []
  const store = storeOf({
    claim: ({ limit, minPriority = 0 }) => {
      wanted.push(`${limit} from ${minPriority}`)
      return new Promise((resolve) => asked.push(resolve))
    },
    complete: async ({ items: completions }) => completions.map(() => 'ok' as const),
    release: async ({ items: holds }) => {
      log.push(...holds.map(({ id }) => `release ${id}`))
      return holds.map(() => 'ok' as const)
    },
    extend: async ({ items: extensions }) => {
      log.push(...extensions.map(({ id }) => `extend ${id}`))
      return extensions.map(() => 'cancelled' as const)
    },
    record: async () => {},
  })
  const { promise: end, resolve: finish } = Promise.withResolvers<void>()
  const ended = new EventEmitter().setMaxListeners(0)
  const settings = { queue: 'q', concurrency, window: 50, lanes, transaction: false, maxPayload: 1_000 }
  const worker = new Worker(
    store,
    { ...settings, schema: undefined, backoff: undefined },
    (job: Job, ctx: Context) => {
      log.push(`start ${job.id}`)
      ctx.signal.addEventListener('abort', () => log.push(`abort ${job.id}`))
      return Promise.race([end, once(ended, job.id)])
    },
    new PondEmitter(),
    ready,
    { removeWorker() {}, completed() {}, due: (ms) => log.push(`due in ${ms}`) },
  )
  const ticks = async () => {
    for (let i = 0; i < 5; i++) await tick()
  }
  t.after(async () => {
    t.mock.timers.reset()
    finish()
    const closed = worker.close()
    await ticks()
    asked.at(-1)?.(claimed([]))
    await closed
  })
  if (ready() === undefined) await until(() => asked.length === 1)
  return {
    worker,
    log,
    wanted,
    claims: () => asked.length,
    /** Ids, with a priority behind a colon unless it is 4. */
    answer: async (ids: string[], given: Partial<Claimed> = {}) => {
      time += 3
      asked.at(-1)?.({ ...claimed(ids), ...given })
      await ticks()
    },
    fail: async () => {
      asked.at(-1)?.(Promise.reject(new Error('no store')))
      await ticks()
    },
    wake: async () => {
      worker.wake()
      await ticks()
    },
    pass: async (ms: number) => {
      time += ms
      t.mock.timers.tick(ms)
      await ticks()
    },
    finish: async (...ids: string[]) => {
      if (ids.length === 0) finish()
      for (const id of ids) ended.emit(id)
      await ticks()
    },
  }
}

const claimed = (ids: string[]): Claimed => ({
  now: 0,
  lease: 30_000,
  jobs: ids.map((id) => claimedJob(id, { priority: Number(id.split(':')[1] ?? 4) })),
  retryAfter: null,
  limited: false,
})

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

test('a pause lasts 10 ms at the most', async (t) => {
  const { claims, answer, wake, pass } = await claiming(t, 100)
  await pass(500)
  await answer(ids(31, 'a'))
  await wake()
  await pass(9)
  assert.equal(claims(), 1)
  await pass(1)
  assert.equal(claims(), 2)
})

test('a claim that brought all it asked for is followed by the next, one that did not by none until something happens', async (t) => {
  const { claims, answer, wake, pass, finish } = await claiming(t, 2)
  await answer(['a', 'b'])
  await finish()
  assert.equal(claims(), 2)
  await answer(['c'])
  await pass(500)
  assert.equal(claims(), 2)
  await wake()
  assert.equal(claims(), 3)
  await wake()
  await answer([])
  assert.equal(claims(), 4, 'it was woken during the claim')
})

test('a claim that tells when to ask again is followed by one then, and the sweeps are told', async (t) => {
  const { claims, answer, pass, log } = await claiming(t, 2)
  await answer([], { retryAfter: 300 })
  assert.deepEqual(log, ['due in 300'])
  await pass(299)
  assert.equal(claims(), 1)
  await pass(1)
  assert.equal(claims(), 2)
  await answer([], { retryAfter: 0 })
  await pass(9)
  assert.equal(claims(), 2, 'not without a break')
  await pass(1)
  assert.equal(claims(), 3)
})

test('after an error it claims again, ever later', async (t) => {
  const { claims, fail, answer, pass, wake } = await claiming(t, 2)
  for (const [made, wait] of [50, 100, 200].entries()) {
    await fail()
    await wake()
    await pass(wait - 1)
    assert.equal(claims(), made + 1)
    await pass(1)
    assert.equal(claims(), made + 2)
  }
  await answer(['a', 'b'])
  assert.equal(claims(), 4)
})

test('after an error it asks for one job, then for twice as many each time: together they may be too much', async (t) => {
  const { answer, fail, pass, wanted, claims } = await claiming(t, 7)
  await fail()
  await pass(50)
  await answer(['a'])
  await answer(['b', 'c'])
  await answer(['d', 'e', 'f', 'g'])
  assert.equal(claims(), 4)
  assert.deepEqual(wanted.slice(1), ['1 from 0', '2 from 0', '4 from 0'])
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

const lane = (minPriority: number, reserve: number) => ({ minPriority, reserve })
const withLanes = (t: TestContext, concurrency: number, ...lanes: ReturnType<typeof lane>[]) =>
  claiming(t, concurrency, undefined, new Lanes(lanes, concurrency))

test('with a lane it claims for all while a slot for all is free, else for the lane', async (t) => {
  const { wanted, answer } = await withLanes(t, 4, lane(7, 1))
  await answer(['a:1', 'b:1', 'c:1'])
  await answer(['d:9'])
  assert.deepEqual(wanted, ['3 from 0', '1 from 7'])
})

test('urgent jobs hold any slot', async (t) => {
  const { wanted, answer, wake, pass, finish } = await withLanes(t, 4, lane(7, 1))
  await answer(['a:9', 'b:7'])
  await wake()
  await pass(6)
  await answer(['c:8', 'd:7'])
  assert.deepEqual(wanted, ['3 from 0', '2 from 0'])
  await finish('a:9')
  assert.deepEqual(wanted.slice(2), ['1 from 0'])
})

test('a slot for all that is freed after an empty claim of the lane is filled at once, and the lane is not asked again', async (t) => {
  const { wanted, answer, finish, pass, log } = await withLanes(t, 3, lane(7, 1))
  await answer(['a:1', 'b:1'])
  await answer([])
  assert.deepEqual(wanted, ['2 from 0', '1 from 7'])
  await finish('a:1')
  assert.deepEqual(wanted.slice(2), ['1 from 0'], 'no pause')
  await answer(['c:1'])
  await pass(6)
  await finish('b:1')
  assert.deepEqual(wanted.slice(3), ['1 from 0'], 'nothing urgent waits, as far as is known')
  assert.deepEqual(log, ['start a:1', 'start b:1', 'start c:1'])
})

test('after an empty claim for all, a freed slot waits for a bell; the bell is for the lane as well', async (t) => {
  const { wanted, answer, finish, wake, pass } = await withLanes(t, 3, lane(7, 1))
  await answer(['a:1'])
  await finish('a:1')
  assert.deepEqual(wanted, ['2 from 0'])
  await wake()
  await answer(['b:1', 'c:1'])
  await pass(6)
  await answer([])
  assert.deepEqual(wanted.slice(1), ['2 from 0', '1 from 7'])
  await wake()
  await pass(6)
  assert.deepEqual(wanted.slice(3), ['1 from 7'])
})

test('a bell during a claim of the lane overtakes its answer', async (t) => {
  const { wanted, answer, wake, pass } = await withLanes(t, 2, lane(7, 1))
  await answer(['a:1'])
  await wake()
  await answer([])
  await pass(6)
  assert.deepEqual(wanted, ['1 from 0', '1 from 7', '1 from 7'])
})

test('lanes above lanes', async (t) => {
  // Below 5: 5 slots. Below 9: 7. All: 8.
  const { wanted, answer, finish } = await withLanes(t, 8, lane(9, 1), lane(5, 2))
  await answer(['a:1', 'b:1', 'c:1', 'd:1', 'e:5'])
  await answer(['f:1'])
  await answer(['g:8'])
  await answer([])
  assert.deepEqual(wanted, ['5 from 0', '1 from 0', '1 from 5', '1 from 9'])
  await finish('e:5')
  assert.deepEqual(wanted.slice(4), ['1 from 5'])
  await answer([])
  await finish('a:1', 'b:1')
  assert.deepEqual(wanted.slice(5), ['2 from 0'])
})

test('with lanes nothing is claimed ahead', async (t) => {
  const { wanted, answer, wake, pass, finish } = await withLanes(t, 2, lane(7, 1))
  for (const id of ['a', 'b', 'c']) {
    await answer([`${id}:9`])
    await pass(1)
    await finish(`${id}:9`)
    await wake()
  }
  await answer(['d:9'])
  await answer(['e:9'])
  await wake()
  assert.deepEqual(wanted, ['1 from 0', '1 from 0', '1 from 0', '1 from 0', '1 from 0'])
})
