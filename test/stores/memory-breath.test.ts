/** Who pushes to the memory store in a loop lets the rest of the process have its turn. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'

test('timers and workers have their turn while jobs are pushed without end', async () => {
  await using pond = await Millpond.open('memory:')
  const queue = pond.queue<number>('q')
  let rang = false
  let ran = false
  const worker = queue.work(() => {
    ran = true
  })
  setTimeout(() => {
    rang = true
  }, 1)
  const until = performance.now() + 10_000
  let pushed = 0
  while (!(rang && ran)) {
    assert.ok(
      performance.now() < until,
      `neither a timer nor a worker, or not both, had a turn during ${pushed} pushes`,
    )
    await queue.push(pushed++)
  }
  await worker.close()
})
