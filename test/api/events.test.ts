/** What a pond tells while it works: which events, in which order, with what in them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import type { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { aborted, atWork, diary, gate, inState, numbers, onEachStore, outlast, refused } from './suite.ts'

type Entries = ReturnType<typeof diary>

/** The events of a job, and those of its queue, by name. */
const names = (entries: Entries) => entries.map(({ name }) => name)

function eventOf(entries: Entries, name: string): Record<string, unknown> {
  const entry = entries.find((candidate) => candidate.name === name)
  assert.ok(entry, `${name} was told`)
  return { ...entry.event }
}

const isTime = (value: unknown) => typeof value === 'number' && value >= 0 && Number.isFinite(value)

async function finished(pond: Millpond, id: string): Promise<void> {
  await pond.result(id).catch(() => {})
}

onEachStore('events', {
  'a job that works out: pushed, started, completed': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1, { priority: 6, key: 'k' })
    await queue.push(2, { key: 'k' })
    const worker = queue.work(() => 'result')
    await finished(pond, id)
    await worker.close()
    assert.deepEqual(names(entries), ['pushed', 'pushed', 'started', 'completed'])
    assert.deepEqual(entries[0]?.event, { queue: 'q', id, existing: false })
    assert.deepEqual(entries[1]?.event, { queue: 'q', id, existing: true })
    const { wait, ...started } = eventOf(entries, 'started')
    assert.deepEqual(started, { queue: 'q', id, attempt: 1, priority: 6 })
    const { run, wait: waited, ...completed } = eventOf(entries, 'completed')
    assert.deepEqual(completed, { queue: 'q', id, attempt: 1, priority: 6, result: 'result' })
    assert.ok(isTime(wait) && isTime(run) && waited === wait)
  },

  'pushed is told of pushMany, too': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const pushed = await pond.queue<number>('q').pushMany([1, 2])
    assert.deepEqual(
      entries,
      pushed.map(({ id }) => ({ name: 'pushed', event: { queue: 'q', id, existing: false } })),
    )
  },

  'a job that fails: failed while attempts are left, then dead': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    // By its type, too, it has the priority.
    const priorities: number[] = []
    pond.on('dead', ({ priority }) => priorities.push(priority))
    const queue = pond.queue<number>('q', { retry: { attempts: 2, backoff: { type: 'fixed', base: 0 } } })
    const { id } = await queue.push(1)
    const worker = queue.work((job) => {
      throw new RangeError(`no ${job.attempt}`)
    })
    await finished(pond, id)
    await worker.close()
    // The store may give the next attempt out before this process has heard of the failure that it told.
    assert.deepEqual(names(entries).sort(), ['dead', 'failed', 'pushed', 'started', 'started'])
    assert.deepEqual([names(entries)[0], names(entries).at(-1)], ['pushed', 'dead'])
    const { error, wait, run, ...failed } = eventOf(entries, 'failed')
    assert.deepEqual(failed, { queue: 'q', id, attempt: 1, priority: 4 })
    assert.ok(isTime(wait) && isTime(run))
    assert.ok(typeof error === 'object' && error !== null && 'code' in error && 'message' in error)
    assert.deepEqual([error.code, error.message], ['HandlerFailed', 'no 1'])
    const dead = eventOf(entries, 'dead')
    assert.ok(typeof dead.error === 'object' && dead.error !== null && 'message' in dead.error)
    assert.deepEqual([dead.id, dead.attempt, dead.priority, dead.error.message], [id, 2, 4, 'no 2'])
    assert.deepEqual(priorities, [4])
  },

  'a job cancelled while it runs: cancelled, then stale': async ({ open }) => {
    const pond = await open()
    const entries = diary(pond)
    const queue = pond.queue<number>('q')
    const worker = queue.work((_, ctx) => aborted(ctx.signal))
    const { id } = await queue.push(1)
    await atWork(worker)
    await pond.cancel(id.toUpperCase())
    await until(() => names(entries).includes('stale') && names(entries).includes('cancelled'))
    await worker.close()
    assert.deepEqual(names(entries).sort(), ['cancelled', 'pushed', 'stale', 'started'])
    assert.deepEqual(eventOf(entries, 'cancelled'), { queue: 'q', id })
    assert.deepEqual(eventOf(entries, 'stale'), { queue: 'q', id, attempt: 1, priority: 4 })
  },

  'a push into a full queue: full': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 1 })
    await queue.push(1)
    const entries = diary(pond)
    await refused(queue.push(2), 'QueueFull')
    await refused(queue.pushMany([3, 4]), 'QueueFull')
    assert.deepEqual(entries, [
      { name: 'full', event: { queue: 'q' } },
      { name: 'full', event: { queue: 'q' } },
    ])
  },

  'a push that waits for room: full once, then pushed': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 1, whenFull: 'wait' })
    await queue.push(1)
    const entries = diary(pond)
    const pushes = numbers(3).map((n) => queue.push(n))
    await until(() => entries.length === 3)
    const worker = queue.work(() => {})
    await Promise.all(pushes)
    await worker.close()
    const told = names(entries)
    assert.equal(told.filter((name) => name === 'full').length, 3)
    assert.equal(told.filter((name) => name === 'pushed').length, 3)
  },

  'a listener is told until it is stopped': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    let heard = 0
    const stop = pond.on('pushed', () => heard++)
    await queue.push(1)
    stop()
    stop()
    await queue.push(2)
    assert.equal(heard, 1)
  },

  'a lost lease: lost, the signal aborted, and another attempt that counts': async ({ open }) => {
    let ahead = 0
    const pond = await open({ clock: () => Date.now() + ahead })
    const entries = diary(pond)
    const queue = pond.queue<number>('q', { lease: '30s' })
    const going = gate()
    let reason: unknown
    const fences: number[] = []
    const worker = queue.work(async (job, ctx) => {
      fences.push(job.fence)
      if (job.attempt > 1) return 'second'
      await going.opened
      // A report is sent soon, and the store's answer tells that the claim is over.
      ctx.progress('still here')
      reason = await aborted(ctx.signal)
      return 'first'
    })
    const { id } = await queue.push(1)
    await atWork(worker)
    await outlast(
      () => (ahead += 31_000),
      () => names(entries).includes('lost'),
    )
    assert.equal(await pond.result(id), 'second')
    going.open()
    await until(() => reason !== undefined)
    await refused(Promise.reject(reason), 'StaleAttempt', /lease/)
    await worker.close()
    assert.deepEqual(eventOf(entries, 'lost'), { queue: 'q', id, attempt: 1, state: 'waiting' })
    assert.deepEqual(eventOf(entries, 'stale'), { queue: 'q', id, attempt: 1, priority: 4 })
    const info = await pond.job(id)
    assert.deepEqual([info?.attempt, info?.result, info?.progress], [2, 'second', undefined])
    assert.ok((fences[1] ?? 0) > (fences[0] ?? 0))
  },

  'a lost lease on the last attempt: dead of LeaseLost; the late result is refused': async ({ open }) => {
    let ahead = 0
    const pond = await open({ clock: () => Date.now() + ahead })
    const entries = diary(pond)
    const queue = pond.queue<number>('q', { lease: '30s' })
    const going = gate()
    const worker = queue.work(() => going.opened.then(() => 'too late'))
    const { id } = await queue.push(1, { attempts: 1 })
    await atWork(worker)
    await outlast(
      () => (ahead += 31_000),
      async () => (await pond.job(id))?.state === 'dead',
    )
    const info = await inState(pond, id, 'dead')
    assert.equal(info.error?.code, 'LeaseLost')
    going.open()
    // The store has both before either is told, and tells them in any order.
    await until(() => names(entries).includes('stale') && names(entries).includes('lost'))
    await worker.close()
    assert.deepEqual(eventOf(entries, 'lost'), { queue: 'q', id, attempt: 1, state: 'dead' })
    assert.equal((await pond.job(id))?.result, undefined)
  },
})

/** Holds the file's lock for as long as the function runs. */
async function locked(url: string, run: () => Promise<void>): Promise<void> {
  const other = new DatabaseSync(url.replace(/^sqlite:|\?.*$/g, ''))
  try {
    other.exec('begin immediate')
    await run()
  } finally {
    other.close()
  }
}

onEachStore(
  'events, trouble with the store',
  {
    'error, while the store fails in the background; then the work goes on': async ({ open, url }) => {
      const pond = await open({ busyTimeout: 20 })
      const entries = diary(pond)
      const queue = pond.queue<number>('q')
      const going = gate()
      const worker = queue.work(() => going.opened.then(() => 'done'))
      const { id } = await queue.push(1)
      await atWork(worker)
      await locked(url, async () => {
        going.open()
        await until(() => names(entries).includes('error'))
        const busy = await refused(queue.push(2), 'StoreBusy', /nothing was changed/)
        assert.equal(busy.retryable, true)
      })
      assert.equal(await pond.result(id), 'done')
      const event = entries.find(({ name }) => name === 'error')?.event
      await refused(Promise.reject(event), 'StoreBusy')
    },

    'a process warning where nobody listens, once per kind': async ({ open, url }) => {
      const pond = await open({ busyTimeout: 20 })
      const queue = pond.queue<number>('q')
      const going = gate()
      const worker = queue.work(() => going.opened.then(() => 'done'))
      const { id } = await queue.push(1)
      await atWork(worker)
      const warnings: (Error & { code?: unknown })[] = []
      const hear = (warning: Error) => void warnings.push(warning)
      process.on('warning', hear)
      try {
        await locked(url, async () => {
          const [warning] = await Promise.all([once(process, 'warning'), going.open()])
          assert.match(String(warning), /MillpondWarning/)
        })
        assert.equal(await pond.result(id), 'done')
        assert.deepEqual(
          warnings.filter(({ name }) => name === 'MillpondWarning').map(({ code }) => code),
          ['StoreBusy'],
        )
      } finally {
        process.off('warning', hear)
      }
    },

    'a queue whose settings could not be stored at first is stored with the next push': async ({ open, url }) => {
      const pond = await open({ busyTimeout: 20 })
      diary(pond)
      const settings = { capacity: 1 }
      let queue = pond.queue<number>('q')
      await locked(url, async () => {
        queue = pond.queue<number>('q', settings)
        await refused(queue.push(1), 'StoreBusy')
        queue.work((job) => job.data)
      })
      const { id } = await queue.push(2)
      assert.equal(await pond.result(id), 2)
      assert.equal((await queue.stats()).capacity, 1)
    },
  },
  'file',
)
