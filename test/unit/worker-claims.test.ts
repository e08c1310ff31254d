/** How often a worker claims, by a store that counts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { PondEmitter } from '../../src/events.ts'
import type { Claimed } from '../../src/store.ts'
import { Worker } from '../../src/worker.ts'
import { claimedJob, storeOf, until } from './suite.ts'

test('a busy worker whose claim came back short waits a moment before the next, an idle one does not', async (t) => {
  let time = 1_000
  t.mock.method(performance, 'now', () => time)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked: ((claimed: Claimed) => void)[] = []
  const store = storeOf({
    claim: () => new Promise((resolve) => asked.push(resolve)),
    complete: async () => ['ok'],
    release: async (_, holds) => holds.map(() => 'ok' as const),
    record: async () => {},
  })
  const { promise: end, resolve: finish } = Promise.withResolvers<void>()
  const settings = { queue: 'q', concurrency: 10, lease: 30_000, window: 50, transaction: false, maxPayload: 1_000 }
  const worker = new Worker(
    store,
    { ...settings, schema: undefined, backoff: () => 0 },
    () => end,
    new PondEmitter(),
    () => undefined,
    () => {},
  )
  const turns = async () => {
    for (let i = 0; i < 5; i++) await turn()
  }
  /** The claim under way took 3 ms. */
  const answer = async (ids: string[]) => {
    time += 3
    asked.at(-1)?.({ now: 0, jobs: ids.map((id) => claimedJob(id)) })
    await turns()
  }
  await until(() => asked.length === 1)
  await answer([])
  worker.wake()
  await turns()
  assert.equal(asked.length, 2, 'nothing runs: at once')
  await answer(['a'])
  for (let i = 0; i < 3; i++) {
    worker.wake()
    await turns()
  }
  assert.equal(asked.length, 2, 'a handler runs')
  time += 6
  t.mock.timers.tick(6)
  await turns()
  assert.equal(asked.length, 3, 'twice as long as the claim took')
  await answer(Array.from({ length: 9 }, (_, n) => `b${n}`))
  finish()
  await turns()
  assert.equal(asked.length, 4, 'the last claim was not short: at once')
  await answer([])
  t.mock.timers.reset()
  await worker.close()
})
