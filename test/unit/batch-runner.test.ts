/** What becomes of a batch if its store refuses the commit, by a store that does so on demand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MillpondError } from '../../src/values/errors/errors.ts'
import type { HoldOutcome } from '../../src/values/jobs/records.ts'
import { Attempt } from '../../src/worker/attempt.ts'
import { Batch } from '../../src/worker/batch.ts'
import type { BatchAnswer } from '../../src/worker/batch-context.ts'
import { batchRunner } from '../../src/worker/batch-runner.ts'
import { runnerTools } from '../../src/worker/runner.ts'
import { claimedJob, noSteps, storeOf } from './suite.ts'

/** Runs a batch of four jobs. @returns their endings by id, and what the transaction was told */
async function run(answer: BatchAnswer, commit: () => HoldOutcome[]) {
  const log: string[] = []
  const endings: Record<string, string> = {}
  const store = storeOf(
    {},
    {
      transactions: {
        takesSettings: false,
        begin: () => ({
          query: async () => [],
          complete: async ({ items: completions }) => {
            log.push(`complete ${completions.map(({ id }) => id).join(' ')}`)
            return commit()
          },
          journal: async ({ items }) => items.map(() => 'ok' as const),
          rollback: async () => void log.push('rollback'),
        }),
        push: async () => [],
      },
    },
  )
  const settings = { queue: 'q', transaction: true, maxPayload: 1_000, schema: undefined, backoff: undefined }
  const terms = {
    maxPayload: 1000,
    reportSoon() {},
    logSoon() {},
    assertRates() {},
    parents: async () => [],
    steps: noSteps,
  }
  const tools = runnerTools(store, settings, terms, { trouble() {}, failure() {} }, (all) => {
    for (const ending of all) {
      const what = ending.kind === 'committed' ? ending.outcome : ending.kind === 'fail' ? ending.error.code : ''
      endings[ending.attempt.claimed.id] = `${ending.kind} ${what}`.trim()
    }
  })
  const runBatch = batchRunner(tools, () => answer)
  const arrival = { now: 0, at: 0, heldUntil: Number.POSITIVE_INFINITY }
  const attempts = ['a', 'b', 'c', 'd'].map((id) => new Attempt(claimedJob(id), arrival))
  await runBatch(new Batch(attempts, () => {}))
  return { endings, log }
}

const ANSWER = [1, 2, new Error('no'), 4]

test('committed: the jobs answered as done are, the other fails', async () => {
  const { endings, log } = await run(ANSWER, () => ['ok', 'ok', 'ok'])
  assert.deepEqual(log, ['complete a b d'])
  assert.deepEqual(endings, { a: 'committed ok', b: 'committed ok', c: 'fail HandlerFailed', d: 'committed ok' })
})

test('a stale claim: it ends so, and all others are released', async () => {
  const { endings } = await run(ANSWER, () => ['ok', 'stale', 'ok'])
  assert.deepEqual(endings, { a: 'release', b: 'committed stale', c: 'release', d: 'release' })
})

test('a result that cannot be stored: nothing is committed, it is dead, and all others are released', async () => {
  const { endings, log } = await run([1, 'x'.repeat(2_000), new Error('no'), 4], () => [])
  assert.deepEqual(log, ['rollback'])
  assert.deepEqual(endings, { a: 'release', b: 'fail PayloadTooLarge', c: 'release', d: 'release' })
})

test('the store fails: so do all jobs', async () => {
  const { endings, log } = await run(ANSWER, () => {
    throw new MillpondError('StoreBusy', 'locked')
  })
  assert.deepEqual(log, ['complete a b d', 'rollback'])
  assert.deepEqual(endings, { a: 'fail StoreBusy', b: 'fail StoreBusy', c: 'fail StoreBusy', d: 'fail StoreBusy' })
})

test('no job is done: nothing is committed', async () => {
  const { endings, log } = await run([1, 2, 3, 4, 5], () => [])
  assert.deepEqual(log, ['rollback'])
  assert.equal(endings.a, 'fail BatchMismatch')
})
