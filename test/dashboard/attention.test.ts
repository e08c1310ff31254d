/** What needs a person: that nobody is there comes before what a limit holds back. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test, after as whole } from 'node:test'
import { Millpond } from '../../src/index.ts'
import type { QueueStats } from '../../src/store.ts'
import { after } from '../support/cleaning.ts'
import { closeBrowser, noBrowser, visit } from './browser.ts'
import { type Answer, firstTick, startDashboard } from './fixture.ts'

whole(closeBrowser)

const MINUTE = 60_000

/** A dashboard of a queue whose store tells these counts. */
async function told(
  t: TestContext,
  { waiting, running, ...more }: Partial<QueueStats> & { waiting: number; running: number },
) {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  await pond.queue('orders').push({})
  const { operations } = pond.parts.store
  const { stats } = operations
  Object.assign(operations, {
    stats: async (request: Parameters<typeof stats>[0]) => {
      const all = await stats.call(operations, request)
      return all.map((one) => ({ ...one, counts: { ...one.counts, waiting, running }, ...more }))
    },
  })
  return startDashboard(t, pond)
}

const textsOf = async ({ base }: { base: string }) =>
  (await firstTick(base)).stores[0].attention.map(({ level, text }: Answer) => `${level} ${text}`)

test('no worker, although jobs run: those of workers that are gone', async (t) => {
  const held = { nextStart: null, oldestWaiting: 0 }
  assert.deepEqual(await textsOf(await told(t, { waiting: 5, running: 20, lastClaim: 12.5 * MINUTE, ...held })), [
    'alarm no worker since 12 minutes ago, 5 jobs wait; the 20 that run are of workers that are gone',
    'warning at its limit: 20 run',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 0, running: 1, lastClaim: 300 * MINUTE })), [
    'alarm no worker since 5 hours ago; the one that runs is of workers that are gone',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 5, running: 20, lastClaim: MINUTE, ...held })), [
    'warning at its limit: 20 run',
  ])
  const waits = { waiting: 1, running: 0, lastClaim: MINUTE }
  for (const [oldestWaiting, words] of [
    [7 * MINUTE, '7 minutes'],
    [150 * MINUTE, '2 hours'],
    [16_460 * MINUTE, '11 days'],
  ] as const) {
    assert.deepEqual(await textsOf(await told(t, { ...waits, oldestWaiting })), [
      `warning the oldest job has waited for ${words}`,
    ])
  }
  // Somebody claims who is never heard of, as in a store that knows no workers.
  assert.deepEqual(await textsOf(await told(t, { waiting: 5, running: 20, lastClaim: null, ...held })), [
    'warning at its limit: 20 run',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 1, running: 0, lastClaim: null, oldestWaiting: 0 })), [
    'alarm no worker has ever asked for jobs, 1 job waits',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 1, running: 0, lastClaim: 2 * MINUTE, paused: true })), [
    'warning paused, 1 job waits',
  ])
})

describe('the page', { skip: noBrowser }, () => {
  test('of the queue says the same first', { timeout: 60_000 }, async (t) => {
    const { base } = await told(t, { waiting: 5, running: 20, lastClaim: 12 * MINUTE, nextStart: null })
    const { page, faults } = await visit(t, `${base}#/queue/main/orders`)
    await page.getByRole('alert').getByText('no worker since 12 minutes ago').waitFor()
    const text = (await page.locator('main').textContent()) ?? ''
    assert.ok(text.indexOf('no worker since') < text.indexOf('at its limit: 20 run'), text)
    await page.getByRole('button', { name: /^Go to … Ctrl\+K$/ }).waitFor()
    assert.deepEqual(faults, [])
  })
})
