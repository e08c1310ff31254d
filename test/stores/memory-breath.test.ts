/** Who pushes to the memory store in a loop leaves the rest of the process time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'

/** Pushes in a loop until the condition holds; fails after ten seconds of it. */
async function pushUntil(holds: () => boolean, push: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!holds()) {
    assert.ok(performance.now() < deadline, 'nothing else ran')
    await push()
  }
}

test('a timer rings while jobs are pushed one after the other', async () => {
  await using pond = await Millpond.open('memory:')
  const queue = pond.queue<number>('q')
  const worker = queue.work(() => {})
  let rang = false
  setTimeout(() => {
    rang = true
  }, 1)
  await pushUntil(
    () => rang,
    () => queue.push(1),
  )
  await worker.close()
})

test('a worker runs while many are pushed at a time', async () => {
  await using pond = await Millpond.open('memory:')
  const queue = pond.queue<number>('q', { capacity: null })
  let ran = false
  const worker = queue.work(() => {
    ran = true
  })
  // So that it has claimed already, and found nothing.
  await new Promise(setImmediate)
  await pushUntil(
    () => ran,
    () => queue.pushMany([1, 2, 3]),
  )
  await worker.close()
})
