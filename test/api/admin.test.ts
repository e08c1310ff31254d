/** What people do with queues and jobs: pausing, cancelling, re-queueing, looking. */
import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import type { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { gate, inState, numbers, onEachStore, refused } from './suite.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

async function dead(pond: Millpond, count: number): Promise<string[]> {
  const queue = pond.queue<number>('q', { retry: { attempts: 1 } })
  const worker = queue.work(() => {
    throw new Error('no')
  })
  const ids = (await queue.pushMany(numbers(count))).map(({ id }) => id)
  await until(async () => (await queue.stats()).counts.dead === count)
  await worker.close()
  return ids
}

onEachStore('overrides', {
  "an operator's limits survive a process that starts with others, until they are given back": async ({
    open,
    shared,
  }) => {
    const pond = await open()
    const options = { capacity: 100, keep: { done: '1h' }, limits: { running: 5 } }
    const queue = pond.queue('q', options)
    await queue.push(1)
    await queue.override({ capacity: 7, limits: { running: 2, group: { running: 1 } }, lease: '1m' })
    const later = shared ? await open() : pond
    const heard: unknown[] = []
    later.on('overridden', (event) => heard.push(event))
    const again = later.queue('q', { ...options, capacity: 200 })
    await again.push(2)
    assert.deepEqual(heard, [{ queue: 'q', settings: ['capacity', 'groupRunning', 'running'] }])
    const { capacity, limits, overrides } = await again.stats()
    assert.deepEqual([capacity, limits?.running, limits?.group?.running], [7, 2, 1])
    assert.deepEqual(overrides, { capacity: 7, running: 2, groupRunning: 1, lease: 60_000 })
    const settings = new Map((await again.settings()).map((setting) => [setting.name, setting]))
    assert.deepEqual(settings.get('capacity'), { name: 'capacity', value: 7, by: 'operator', code: 200 })
    assert.deepEqual(settings.get('keepDone'), { name: 'keepDone', value: 3_600_000, by: 'code' })
    await again.clearOverrides(['capacity'])
    assert.equal((await again.stats()).capacity, 200)
    await again.clearOverrides()
    const cleared = await again.stats()
    assert.deepEqual([cleared.overrides, cleared.limits?.running, cleared.limits?.group?.running], [{}, 5, null])
  },

  'bad overrides are refused': async ({ open }) => {
    const queue = (await open()).queue('q')
    await refused(queue.override({ capacity: 0 }), 'InvalidOption', /capacity/)
    await refused(queue.override({ schema: {} } as never), 'InvalidOption', /"schema"; known are capacity/)
    await refused(queue.override({ retry: { backoff: () => 5 } }), 'InvalidOption', /function/)
    await refused(queue.clearOverrides(['colour' as never]), 'InvalidOption', /"colour" is no setting/)
    assert.ok((await queue.settings()).every(({ by }) => by === 'default'))
  },
})

onEachStore('pause', {
  'a paused queue takes pushes and starts nothing until it is resumed': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const other = pond.queue<string>('other')
    const seen: string[] = []
    await queue.pause()
    queue.work((job) => void seen.push(job.data))
    other.work((job) => void seen.push(job.data))
    const { id } = await queue.push('paused')
    const free = await other.push('free')
    await pond.result(free.id)
    assert.equal((await pond.job(id))?.state, 'waiting')
    assert.deepEqual([(await queue.stats()).paused, (await other.stats()).paused], [true, false])
    await queue.resume()
    await pond.result(id)
    assert.deepEqual(seen, ['free', 'paused'])
    assert.equal((await queue.stats()).paused, false)
  },

  'what runs already goes on while paused': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q')
    const done = gate()
    queue.work(() => done.opened.then(() => 'done'))
    const { id } = await queue.push('x')
    await inState(pond, id, 'running')
    await queue.pause()
    done.open()
    assert.equal(await pond.result(id), 'done')
  },
})

onEachStore(
  'pause, several ponds',
  {
    'pausing in one pond holds the workers of the other': async ({ open }) => {
      const [here, there] = [await open(), await open()]
      const queue = here.queue<number>('q')
      await queue.pause()
      there.queue<number>('q').work((job) => job.data)
      const other = there.queue<number>('other')
      other.work(() => 'free')
      const { id } = await queue.push(7)
      const free = await here.queue<number>('other').push(1)
      await here.result(free.id)
      assert.equal((await here.job(id))?.state, 'waiting')
      assert.equal((await there.queue('q').stats()).paused, true)
      await here.queue('q').resume()
      assert.equal(await here.result(id), 7)
    },
  },
  'shared',
)

onEachStore('cancel', {
  'in each state': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { retry: { attempts: 1 } })
    const waiting = await queue.push('waiting')
    const scheduled = await queue.push('scheduled', { delay: '1h' })
    assert.equal(await pond.cancel(waiting.id), 'cancelled')
    assert.equal(await pond.cancel(scheduled.id.toUpperCase()), 'cancelled')
    assert.equal(await pond.cancel(waiting.id), 'cancelled', 'twice is once')
    const held = gate()
    queue.work((job) => {
      if (job.data === 'running') return held.opened
      if (job.data === 'dead') throw new Error('no')
      return 'result'
    })
    const running = await queue.push('running')
    await inState(pond, running.id, 'running')
    assert.equal(await pond.cancel(running.id), 'cancelled')
    const done = await queue.push('done')
    await inState(pond, done.id, 'done')
    assert.equal(await pond.cancel(done.id), 'done')
    const dead = await queue.push('dead')
    await inState(pond, dead.id, 'dead')
    assert.equal(await pond.cancel(dead.id), 'dead')
    assert.equal(await pond.cancel(UNKNOWN), undefined)
    held.open()
    assert.deepEqual((await queue.stats()).counts, {
      blocked: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      done: 1,
      dead: 1,
      cancelled: 3,
    })
  },

  'frees the key': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1, { key: 'k' })
    await pond.cancel(id)
    assert.equal((await queue.push(2, { key: 'k' })).existing, false)
  },
})

onEachStore('requeue', {
  'the named dead jobs run again with all their attempts': async ({ open }) => {
    const pond = await open()
    const [one = '', two = '', three = ''] = await dead(pond, 3)
    const queue = pond.queue<number>('q')
    assert.equal(await queue.requeue([one, three.toUpperCase(), UNKNOWN]), 2)
    const info = await pond.job(one)
    assert.deepEqual([info?.state, info?.attempt, info?.error?.message], ['waiting', 0, 'no'])
    assert.equal((await pond.job(two))?.state, 'dead')
    queue.work((job) => `mended ${job.data}`)
    assert.deepEqual(await Promise.all([pond.result(one), pond.result(three)]), ['mended 0', 'mended 2'])
    assert.equal(await queue.requeue([one]), 0, 'a job that is done stays done')
  },

  'all dead jobs of the queue, however many': async ({ open }) => {
    const pond = await open()
    await dead(pond, 1100)
    const cancelled = await pond.queue<number>('q').push(0)
    await pond.cancel(cancelled.id)
    assert.equal(await pond.queue('other').requeue(), 0)
    assert.equal(await pond.queue('q').requeue(), 1100)
    const { counts } = await pond.queue('q').stats()
    assert.deepEqual([counts.dead, counts.waiting, counts.cancelled], [0, 1100, 1])
    assert.equal(await pond.queue('q').requeue([cancelled.id]), 1)
  },

  'only what was dead at the call, once each, while a worker fails it again': async ({ open }) => {
    const pond = await open()
    await dead(pond, 1100)
    const queue = pond.queue<number>('q')
    const runs = new Map<string, number>()
    queue.work(
      ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        throw new Error('again')
      },
      { concurrency: 100 },
    )
    assert.equal(await queue.requeue(), 1100)
    await until(async () => (await queue.stats()).counts.dead === 1100)
    assert.equal(runs.size, 1100)
    assert.deepEqual(new Set(runs.values()), new Set([1]))
  },

  'not a job whose key is taken': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1, { key: 'k' })
    await pond.cancel(id)
    await queue.push(2, { key: 'k' })
    assert.equal(await queue.requeue([id]), 0)
    assert.equal((await pond.job(id))?.state, 'cancelled')
  },

  'ids that are none are refused': async ({ open }) => {
    const pond = await open()
    await refused(pond.queue('q').requeue(['x']), 'InvalidName', /UUID/)
  },
})

onEachStore('stats', {
  'counts, age of the oldest, and percentiles per priority': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 500, retry: { attempts: 1 } })
    const empty = await queue.stats()
    assert.deepEqual(
      [empty.queue, empty.capacity, empty.oldestWaiting, empty.wait, empty.priorities],
      ['q', 500, null, { count: 0, p50: undefined, p95: undefined, p99: undefined }, []],
    )
    await queue.push(1, { delay: '1h' })
    await queue.pushMany(numbers(20), { priority: 7 })
    await queue.pushMany(numbers(10), { priority: 2 })
    const before = await queue.stats()
    assert.deepEqual([before.counts.waiting, before.counts.scheduled], [30, 1])
    assert.ok(before.oldestWaiting !== null && before.oldestWaiting >= 0)
    const worker = queue.work(() => setImmediate())
    await until(async () => (await queue.stats()).counts.done === 30)
    await worker.close()
    const { counts, wait, run, priorities, oldestWaiting } = await queue.stats({ minutes: 60 })
    assert.deepEqual(counts, { blocked: 0, scheduled: 1, waiting: 0, running: 0, done: 30, dead: 0, cancelled: 0 })
    assert.equal(oldestWaiting, null)
    for (const figures of [wait, run]) {
      assert.equal(figures.count, 30)
      const { p50 = -1, p95 = -1, p99 = -1 } = figures
      assert.ok(p50 >= 0 && p95 >= p50 && p99 >= p95, JSON.stringify(figures))
    }
    assert.deepEqual(
      priorities.map(({ priority, wait, run }) => [priority, wait.count, run.count]),
      [
        [7, 20, 20],
        [2, 10, 10],
      ],
    )
  },

  'of all queues': async ({ open }) => {
    const pond = await open()
    assert.deepEqual(await pond.stats(), [])
    await pond.queue('a').push(1)
    await pond.queue('b').pushMany([1, 2])
    const all = await pond.stats({ minutes: 1 })
    assert.deepEqual(all.map(({ queue, counts }) => [queue, counts.waiting]).sort(), [
      ['a', 1],
      ['b', 2],
    ])
    assert.equal((await pond.queue('never.seen').stats()).counts.waiting, 0)
  },

  'how finished jobs are kept': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<string>('q', { keep: { done: '1h', dead: 0 }, retry: { attempts: 1 } })
    queue.work((job) => {
      if (job.data === 'dead') throw new Error('no')
    })
    const [done, dead] = [await queue.push('done'), await queue.push('dead')]
    await inState(pond, done.id, 'done')
    await until(async () => (await pond.job(dead.id)) === undefined)
  },
})
