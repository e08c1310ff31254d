/** Pushes of every kind are stored in the order in which they were made. */
import assert from 'node:assert/strict'
import { onEachStore } from './suite.ts'

onEachStore('pushes in order', {
  'push, pushMany and push again, at once': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('ordered')
    const pushes = [queue.push(1), queue.pushMany([2, 3]), queue.push(4), queue.pushMany([5]), queue.push(6)]
    await Promise.all(pushes)
    const jobs = await queue.jobs('waiting')
    assert.deepEqual(
      jobs.map(({ data }) => data),
      [1, 2, 3, 4, 5, 6],
    )
  },

  'also where pushes wait for room, and where the store is told of settings first': async ({ open }) => {
    const pond = await open()
    const queue = pond.queue<number>('roomy', { capacity: 4, whenFull: 'wait' })
    const pushes = [queue.push(1), queue.pushMany([2]), queue.push(3)]
    await Promise.all(pushes)
    const jobs = await queue.jobs('waiting')
    assert.deepEqual(
      jobs.map(({ data }) => data),
      [1, 2, 3],
    )
  },
})
