import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Millpond } from '../../src/pond/millpond.ts'
import type { RequeueRequest } from '../../src/values/operations/requests.ts'
import { storeOf } from './suite.ts'

test('requeue of a queue: each call after the first one asks for what was dead at that time', async () => {
  const asked: RequeueRequest[] = []
  const answers = [1000, 1000, 7]
  const requeue = async (request: RequeueRequest) => {
    asked.push(request)
    return { requeued: answers[asked.length - 1] ?? 0, now: 1_000_000 + asked.length }
  }
  const pond = new Millpond(
    storeOf({
      requeue,
      stats: async () => [],
    }),
    1000,
  )
  assert.equal(await pond.queue('q').requeue(), 2007)
  const first = { queue: 'q', limit: 1000 }
  assert.deepEqual(asked, [first, { ...first, until: 1_000_001 }, { ...first, until: 1_000_001 }])
  await pond.close()
})
