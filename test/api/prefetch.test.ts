/** Claiming ahead must be fast for short jobs, and must not park them behind a long one while somebody is idle. */
import assert from 'node:assert/strict'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { gate, inState, numbers, onEachStore } from './suite.ts'

const SHORT = 5

/** A thousand short jobs and a long one over single-slot workers; the long one lasts until all others are done. */
async function mixed(ponds: readonly Millpond[]): Promise<void> {
  const [pond] = ponds
  assert.ok(pond)
  const long = gate()
  const done = new Set<number>()
  let begun = false
  let released = 0
  let heldUp = 0
  const workers = ponds.map((each) => {
    each.on('released', ({ count }) => {
      released += count
    })
    return each.queue<number>('q').work(
      async (job) => {
        if (job.data < 0) {
          begun = true
          return long.opened
        }
        await sleep(SHORT)
        done.add(job.data)
      },
      { concurrency: 1 },
    )
  })
  const queue = pond.queue<number>('q')
  // Workers learn that jobs are short, so that they claim ahead, also while the long one begins.
  await queue.pushMany(numbers(200))
  await until(() => done.size > 50)
  const { id } = await queue.push(-1, { priority: 9 })
  await queue.pushMany(numbers(800).map((n) => 200 + n))
  await until(() => begun)
  await until(() => done.size === 1000, 'all short jobs to be done while the long one runs')
  assert.equal((await pond.job(id))?.state, 'running')
  for (const worker of workers) heldUp += worker.load.buffered
  assert.equal(heldUp, 0, 'nothing waits behind the long job')
  assert.ok(released > 0, 'what was claimed ahead behind the long job was given back')
  long.open()
  await inState(pond, id, 'done')
  // A handler has ended before the store has heard of it.
  await until(async () => (await queue.stats()).counts.done === 1001)
  assert.ok((await pond.job(id))?.attempt === 1)
}

onEachStore('prefetch', {
  'four workers of one pond: no short job waits behind a long one': async ({ open }) => {
    const pond = await open()
    await mixed([pond, pond, pond, pond])
  },

  'what is claimed ahead behind a job that lasts is given back': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const long = gate()
    const seen: number[] = []
    let released = 0
    pond.on('released', ({ queue: name, count }) => {
      assert.equal(name, 'q')
      released += count
    })
    const handler = (job: { data: number }) => (job.data < 0 ? long.opened : void seen.push(job.data))
    const worker = queue.work(handler, { concurrency: 1 })
    await Promise.all((await queue.pushMany(numbers(5))).map(({ id }) => pond.result(id)))
    // The long one and those behind it arrive in one claim, or within a window of it.
    await queue.pushMany([-1, ...numbers(20).map((n) => 100 + n)])
    await until(() => released > 0)
    await until(() => worker.load.buffered === 0)
    // The event comes when the worker lets go of them; the store hears of it a moment later.
    await until(async () => (await queue.stats()).counts.waiting === 20)
    assert.equal((await queue.stats()).counts.running, 1)
    const jobs = await queue.jobs('waiting')
    assert.ok(
      jobs.every(({ attempt }) => attempt === 0),
      'being claimed ahead is no attempt',
    )
    assert.deepEqual(
      jobs.map(({ data }) => data),
      numbers(20).map((n) => 100 + n),
      'those given back keep their place',
    )
    const other = queue.work(handler, { concurrency: 1 })
    await until(() => seen.length === 25)
    long.open()
    await other.close()
  },

  'with a window of 0 nothing is claimed ahead': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let most = 0
    const worker = queue.work(
      async () => {
        await setImmediate()
        // What came in the same claim may not have started yet, where the event loop was held up: but it has its slot.
        most = Math.max(most, worker.load.buffered + worker.load.running)
      },
      { concurrency: 2, window: 0 },
    )
    await Promise.all((await queue.pushMany(numbers(100))).map(({ id }) => pond.result(id)))
    assert.ok(most <= 2, `${most} were held for 2 slots`)
  },

  'long jobs are not claimed ahead': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let most = 0
    const worker = queue.work(
      async () => {
        most = Math.max(most, worker.load.buffered)
        await sleep(25)
      },
      { concurrency: 1, window: 5 },
    )
    await Promise.all((await queue.pushMany(numbers(6))).map(({ id }) => pond.result(id)))
    assert.equal(most, 0)
  },
})

onEachStore(
  'prefetch, several ponds',
  {
    'four workers on one file: no short job waits behind a long one': async ({ open }) => {
      await mixed([await open(), await open(), await open(), await open()])
    },
  },
  'shared',
)
