/** Full queues: refusing, and waiting for room. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { gate, inState, numbers, onEachStore, refused } from './suite.ts'

onEachStore('capacity', {
  'a full queue refuses, stores nothing, and takes jobs again once there is room': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 2 })
    const first = await queue.push(1)
    await queue.push(2, { delay: '1h' })
    const error = await refused(queue.push(3), 'QueueFull', /whenFull/)
    assert.deepEqual([error.retryable, error.queue], [true, 'q'])
    const { counts, capacity } = await queue.stats()
    assert.deepEqual([counts.waiting, counts.scheduled, capacity], [1, 1, 2])
    const known = await queue.push(1, { id: first.id })
    assert.deepEqual(known, { id: first.id, existing: true }, 'a repeated push is no push')
    await pond.cancel(first.id)
    await queue.push(4)
    await refused(queue.push(5), 'QueueFull')
  },

  'the capacity is the queue’s, whoever pushes, and can be lifted': async ({ open }) => {
    const pond = await open()
    await pond.queue<number>('q', { capacity: 1 }).push(1)
    await refused(pond.queue<number>('q').push(2), 'QueueFull')
    await pond.queue<number>('q', { capacity: null }).push(3)
    await pond.queue<number>('q').push(4)
    assert.equal((await pond.queue('q').stats()).capacity, null)
  },

  'with wait, pushes go through as room appears, in order': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 5, whenFull: 'wait' })
    const seen: number[] = []
    const resolved: number[] = []
    const pushes = numbers(100).map((n) => queue.push(n).then(() => resolved.push(n)))
    await until(async () => resolved.length === 5)
    assert.equal((await queue.stats()).counts.waiting, 5)
    const worker = queue.work((job) => void seen.push(job.data), { concurrency: 1 })
    await Promise.all(pushes)
    await until(() => seen.length === 100)
    await worker.close()
    assert.deepEqual(seen, numbers(100))
    assert.deepEqual(resolved, numbers(100))
  },

  'with wait, a late push does not overtake those that wait': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 1, whenFull: 'wait' })
    const seen: number[] = []
    const pushes = numbers(20).map((n) => queue.push(n))
    await pushes[0]
    let late = 100
    const worker = queue.work(
      (job) => {
        seen.push(job.data)
        // Here is room for one, and a push that could take it before those that wait are told.
        if (job.data < 20) pushes.push(queue.push(late++))
      },
      { concurrency: 1 },
    )
    await until(() => seen.length === 40)
    await Promise.all(pushes)
    await worker.close()
    assert.deepEqual(seen, [...numbers(20), ...numbers(20).map((n) => 100 + n)])
  },

  'with wait, more pushes than one call carries keep their order': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 100, whenFull: 'wait' })
    const seen: number[] = []
    const worker = queue.work((job) => void seen.push(job.data), { concurrency: 1 })
    await Promise.all(numbers(1500).map((n) => queue.push(n)))
    await until(() => seen.length === 1500)
    await worker.close()
    assert.deepEqual(seen, numbers(1500))
  },

  'with wait, pushMany goes through as room appears, in order': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 7, whenFull: 'wait' })
    const seen: number[] = []
    const worker = queue.work((job) => void seen.push(job.data), { concurrency: 1 })
    const pushed = await queue.pushMany(numbers(60))
    assert.equal(new Set(pushed.map(({ id }) => id)).size, 60)
    await until(() => seen.length === 60)
    await worker.close()
    assert.deepEqual(seen, numbers(60))
  },

  'with wait, a lifted capacity lets them through': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 1, whenFull: 'wait' })
    const pushes = numbers(10).map((n) => queue.push(n))
    await pushes[0]
    await pond.queue<number>('q', { capacity: null }).push(99)
    await Promise.all(pushes)
    assert.equal((await queue.stats()).counts.waiting, 11)
  },

  'pushes that wait end with Closed when the pond closes': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 2, whenFull: 'wait' })
    await queue.pushMany([1, 2])
    const waits = [queue.push(3), queue.push(4)].map((push) => refused(push, 'Closed', /not stored/))
    const many = refused(queue.pushMany([5, 6]), 'Closed')
    await queue.stats()
    const { dropped } = await pond.close()
    await Promise.all(waits)
    assert.equal((await many).pushed, 0)
    assert.equal(dropped, pond.store.capabilities.durable ? 0 : 2)
  },

  'a running job takes no room': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { capacity: 1 })
    const done = gate()
    queue.work(() => done.opened, { concurrency: 1 })
    const { id } = await queue.push(1)
    await inState(pond, id, 'running')
    await queue.push(2)
    await refused(queue.push(3), 'QueueFull')
    done.open()
  },
})

onEachStore(
  'capacity, several ponds',
  {
    'room made elsewhere lets a push through': async ({ open }) => {
      const [here, there] = [await open(), await open()]
      const queue = here.queue<number>('q', { capacity: 1, whenFull: 'wait' })
      await queue.push(1)
      const second = queue.push(2)
      await here.stats()
      there.queue('q').work(() => {})
      await second
    },
  },
  'shared',
)
