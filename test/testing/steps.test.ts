/** Steps in tests: a clock that passes over sleeps, and handlers that are called alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Context, Job } from '../../src/index.ts'
import { openTestPond, runHandler } from '../../src/testing/index.ts'

const ran: string[] = []

async function handler(job: Job<number>, ctx: Context): Promise<unknown> {
  const plan = await ctx.step('plan', () => {
    ran.push('plan')
    return job.data * 2
  })
  await ctx.sleep('cool-off', '3d')
  const answer = await ctx.waitFor<string>('go', { timeout: '1d' })
  return { plan, answer }
}

test('a moved clock passes over sleeps', async () => {
  await using pond = await openTestPond()
  const queue = pond.queue<number>('q')
  queue.work(handler)
  const { id } = await queue.push(21)
  await pond.drain()
  assert.equal((await pond.job(id))?.waits?.[0]?.name, 'cool-off')
  await pond.advance('71h')
  assert.equal((await pond.job(id))?.waits?.[0]?.name, 'cool-off')
  await pond.advance('1h')
  assert.equal((await pond.job(id))?.waits?.[0]?.name, 'go')
  await pond.signal(id, 'go', 'yes')
  await pond.drain()
  assert.deepEqual((await pond.job(id))?.result, { plan: 42, answer: 'yes' })
  assert.deepEqual(ran, ['plan'])
})

test('a handler alone: with what was kept, it goes on behind it', async () => {
  const first = await runHandler(handler, 1)
  assert.deepEqual([first.outcome, first.steps, first.waits[0]?.name], ['parked', { plan: 2 }, 'cool-off'])
  const steps = [
    { name: 'plan', result: 2 },
    { name: 'cool-off', kind: 'sleep' as const },
    { name: 'go', kind: 'wait' as const, result: 'yes' },
  ]
  const last = await runHandler(handler, 1, { steps })
  assert.deepEqual([last.outcome, last.result], ['done', { plan: 2, answer: 'yes' }])
})
