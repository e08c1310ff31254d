/** What is kept alive for its shape has the very shape of what is at work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import { Attempt } from '../../src/attempt.ts'
import { type Context, type Job, Millpond } from '../../src/index.ts'
import { SHAPES } from '../../src/shapes.ts'
import { CLAIM } from '../../src/stores/memory/job.ts'

setFlagsFromString('--allow-natives-syntax')
const alike = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean

test('attempts, jobs and claims keep the shapes of those that are kept for them', async () => {
  await using pond = await Millpond.open('memory:')
  const queue = pond.queue<{ n: number }>('q')
  const seen: { job: Job<unknown>; attempt: Context }[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  await queue.pushMany(Array.from({ length: 500 }, (_, n) => ({ n })))
  queue.work((job, attempt) => {
    if (seen.push({ job, attempt }) === 500) resolve()
  })
  await promise
  await pond.close()
  for (const { job, attempt } of seen) {
    assert.ok(attempt instanceof Attempt)
    assert.ok(alike(attempt, SHAPES.attempt), 'the attempt')
    assert.ok(alike(job, SHAPES.job), 'the job')
    assert.ok(alike(attempt.claimed, CLAIM), 'the claim')
  }
})
