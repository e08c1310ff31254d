/** The order in which pushes are stored, whichever way they come; and what can be done with jobs after that. */
import assert from 'node:assert/strict'
import { until } from '../support/until.ts'
import { gate, numbers, onEachStore, refused } from './suite.ts'

const UNKNOWN = '01932c0e-5b00-7abc-8def-0123456789ab'

onEachStore('order of pushes', {
  'push, pushMany and push again are stored in the order of the calls': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    await Promise.all([queue.push(1), queue.pushMany([2, 3]), queue.push(4), queue.pushMany([5]), queue.push(6)])
    assert.deepEqual(
      (await queue.jobs('waiting')).map(({ data }) => data),
      [1, 2, 3, 4, 5, 6],
    )
  },
  'also the first pushes of a queue with settings': async ({ open }) => {
    const queue = (await open()).queue<number>('q', { lease: '1m' })
    await Promise.all([queue.push(1), queue.pushMany([2, 3]), queue.push(4)])
    assert.deepEqual(
      (await queue.jobs('waiting')).map(({ data }) => data),
      [1, 2, 3, 4],
    )
  },
  'a pushMany of several calls keeps its place': async ({ open }) => {
    const queue = (await open()).queue<number>('q')
    await Promise.all([queue.pushMany(numbers(600)), queue.push(600)])
    const first = await queue.jobs('waiting', { limit: 400 })
    const after = first.at(-1)?.cursor
    const rest = await queue.jobs('waiting', { limit: 400, after })
    assert.deepEqual(
      [...first, ...rest].map(({ data }) => data),
      numbers(601),
    )
  },
  'pushes that wait for capacity keep it as well': async ({ open }) => {
    const queue = (await open()).queue<number>('q', { capacity: 2, whenFull: 'wait' })
    const pushes = [queue.push(1), queue.pushMany([2, 3]), queue.push(4)]
    await until(async () => (await queue.stats()).counts.waiting === 2)
    const seen: unknown[] = []
    const worker = queue.work(({ data }) => void seen.push(data))
    await Promise.all(pushes)
    await until(() => seen.length === 4)
    await worker.close()
    assert.deepEqual(seen, [1, 2, 3, 4])
  },
  'a full queue tells how many of a pushMany it has, and takes none after them': async ({ open }) => {
    const queue = (await open()).queue<number>('q', { capacity: 3 })
    await assert.rejects(queue.pushMany(numbers(700)), { code: 'QueueFull', pushed: 3 })
    assert.equal((await queue.stats()).counts.waiting, 3)
  },
})

onEachStore('changing and removing', {
  'an update changes data, priority and due time': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    assert.equal(await queue.update(id, { data: 2, priority: 7, delay: '1h' }), 'updated')
    const job = await pond.job(id)
    assert.deepEqual([job?.data, job?.priority, job?.state], [2, 7, 'scheduled'])
    assert.equal(await queue.update(id, { runAt: new Date(0) }), 'updated')
    assert.equal((await pond.job(id))?.state, 'waiting')
    await pond.cancel(id)
    assert.equal(await queue.update(id, { data: 3 }), 'cancelled')
    assert.equal(await queue.update(UNKNOWN, { data: 3 }), undefined)
    await refused(queue.update(id, { delay: 1, runAt: 1 }), 'InvalidOption', /not both/)
  },
  'a removed job is unknown to who waits for its result, at once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q')
    const { id } = await queue.push(1)
    const result = refused(pond.result(id), 'JobUnknown', /removed/)
    assert.equal(await queue.remove([id, UNKNOWN]), 1)
    await result
  },
  'a queue is removed with all that it has': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('q', { lease: '1m' })
    await queue.pushMany(numbers(1100))
    assert.equal(await pond.removeQueue('q'), 1100)
    assert.deepEqual(await pond.stats(), [])
    assert.equal(await pond.removeQueue('q'), 0)
    await pond.queue('q', { lease: '1m' }).push(1)
    const lease = (await queue.settings()).find(({ name }) => name === 'lease')
    assert.deepEqual(lease, { name: 'lease', value: 60_000, by: 'code' })
  },
  'filters of a list': async ({ open }) => {
    const queue = (await open()).queue<{ n: number }>('q')
    const before = Date.now() - 60_000
    await queue.pushMany(
      numbers(5).map((n) => ({ n })),
      { group: 'a' },
    )
    await queue.push({ n: 7 }, { key: 'k' })
    const of = async (options: object) => (await queue.jobs('waiting', options)).map(({ data }) => data?.n)
    assert.deepEqual(await of({ group: 'a', limit: 2 }), [0, 1])
    assert.deepEqual(await of({ group: '' }), [7])
    assert.deepEqual(await of({ key: 'k', pushedFrom: new Date(before) }), [7])
    assert.deepEqual(await of({ pushedBefore: before }), [])
    await refused(queue.jobs('waiting', { text: 1 as never }), 'InvalidOption', /text/)
  },
  'workers are listed while they are open': async ({ open }) => {
    const pond = await open()
    const { entered, handler, release } = busy()
    const queue = pond.queue<number>('q')
    const worker = queue.work(handler)
    await queue.push(1)
    await entered
    await until(async () => (await pond.workers({ queue: 'q' })).length === 1)
    const [told] = await pond.workers()
    assert.deepEqual([told?.id, told?.queue, told?.pid], [worker.id, 'q', process.pid])
    assert.ok(told?.since instanceof Date)
    release()
    await worker.close()
    await until(async () => (await pond.workers()).length === 0)
  },
})

function busy() {
  const entered = Promise.withResolvers<void>()
  const held = gate()
  const handler = async () => {
    entered.resolve()
    await held.opened
  }
  return { entered: entered.promise, handler, release: held.open }
}
