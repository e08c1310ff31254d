/** What is kept alive for its shape has the very shape of what is at work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import { Attempt } from '../../src/attempt.ts'
import { type Context, type Job, Millpond } from '../../src/index.ts'
import { SHAPES } from '../../src/shapes.ts'
import type { Claimed } from '../../src/store.ts'
import { CLAIM, Claim } from '../../src/stores/memory/job.ts'
import { storeOf } from './suite.ts'

setFlagsFromString('--allow-natives-syntax')
const alike = runInThisContext('(a, b) => %HaveSameMap(a, b)') as (a: object, b: object) => boolean

test('a worker keeps its shape over its work', async () => {
  // One that has not heard of its store yet, as no worker in this process has: so this test has to be the first.
  const answer = Promise.withResolvers<Claimed>()
  const waiting = new Millpond(
    storeOf({ claim: () => answer.promise, stats: async () => [], close: async () => {} }),
    1000,
  )
  const fresh = waiting.queue('q').work(() => {})
  const pond = await Millpond.open('memory:')
  const queue = pond.queue('q')
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = 1000
  const busy = queue.work(
    async () => {
      await new Promise(setImmediate)
      if (--left === 0) resolve()
    },
    { concurrency: 50 },
  )
  for (let n = 0; n < 10; n++) await queue.pushMany(Array.from({ length: 100 }, () => null))
  await promise
  const kept = alike(busy, fresh)
  answer.resolve({ now: 0, jobs: [] })
  await pond.close()
  await waiting.close()
  assert.ok(kept)
})

test('attempts, jobs, claims and what a memory store holds keep the shapes of those that are kept for them', async () => {
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
    const { claimed } = attempt
    assert.ok(claimed instanceof Claim)
    assert.ok(alike(claimed, CLAIM), 'the claim')
    // A field that meets its first fraction, or its first boxed integer, changes the shape: all others that wait are then converted, one by one.
    assert.ok(alike(claimed.job, CLAIM.job), 'the job that the store holds')
  }
})
