/** What needs a person: that nobody is there comes before what a limit holds back. */

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { attentionOf } from '../../src/dashboard/attention.ts'
import type { QueueView } from '../../src/dashboard/views.ts'
import { Millpond, MillpondError } from '../../src/index.ts'
import { internalsOf } from '../../src/pond/internals.ts'
import { openStore } from '../../src/stores/open.ts'
import { LARGEST_PAYLOAD } from '../../src/values/encoding/encoding.ts'
import type { QueueStats, WorkerRecord } from '../../src/values/operations/requests.ts'
import { after } from '../support/cleaning.ts'
import { meddled } from '../support/meddled.ts'
import { noBrowser, visit } from './browser.ts'
import { type Answer, firstTick, startDashboard, ticksOf } from './fixture.ts'

const MINUTE = 60_000

/** A dashboard of a queue whose store tells these counts. */
async function told(
  t: TestContext,
  { waiting, running, ...more }: Partial<QueueStats> & { waiting: number; running: number },
  workers: WorkerRecord[] = [],
) {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  await pond.queue('orders').push({})
  const { operations } = internalsOf(pond).store
  const { stats } = operations
  Object.assign(operations, {
    stats: async (request: Parameters<typeof stats>[0]) => {
      const all = await stats.call(operations, request)
      return all.map((one) => ({ ...one, counts: { ...one.counts, waiting, running }, ...more }))
    },
    workers: async () => workers,
  })
  return startDashboard(t, pond)
}

/** Of a queue that has nothing. */
async function emptyStats(): Promise<QueueStats> {
  const store = await openStore('memory:', {})
  await store.operations.configure({ queue: 'orders', capacity: null })
  const [stats] = await store.operations.stats({ queue: 'orders' })
  await store.close()
  assert.ok(stats)
  return stats
}

const textsOf = async ({ base }: { base: string }) =>
  (await firstTick(base)).stores[0].attention.map(({ level, text }: Answer) => `${level} ${text}`)

test('no worker, although jobs run: those of workers that are gone', async (t) => {
  const held = { nextStart: null, oldestWaiting: 0 }
  assert.deepEqual(await textsOf(await told(t, { waiting: 5, running: 20, lastClaim: 12.5 * MINUTE, ...held })), [
    'alarm no worker since 12 minutes ago, 5 jobs wait; the 20 that run are of workers that are gone',
    'warning at its limit: 20 run; “Running at once” under Settings raises it',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 0, running: 1, lastClaim: 300 * MINUTE })), [
    'alarm no worker since 5 hours ago; the one that runs is of workers that are gone',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 5, running: 20, lastClaim: MINUTE, ...held })), [
    'warning at its limit: 20 run; “Running at once” under Settings raises it',
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
    'warning at its limit: 20 run; “Running at once” under Settings raises it',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 1, running: 0, lastClaim: null, oldestWaiting: 0 })), [
    'alarm no worker has ever asked for jobs, 1 job waits',
  ])
  assert.deepEqual(await textsOf(await told(t, { waiting: 1, running: 0, lastClaim: 2 * MINUTE, paused: true })), [
    'warning paused, 1 job waits',
  ])
})

test('slots, silent workers and limits: what helps, and where', async (t) => {
  const beat = { id: 'w', queue: 'orders', host: 'h', pid: 1, slots: 20, busy: 20 }
  const full = { waiting: 5, running: 20, lastClaim: 0, oldestWaiting: 0, nextStart: 0 }
  const rate = { count: 5, per: 1000, burst: null }
  const limits = { running: null, rate, grouped: true, groupRunning: 2, groupRate: null }
  const lanes = [{ minPriority: 8, reserve: 2 }]
  const silent = [{ ...beat, silence: 42_000, since: 0, seen: 0, lanes }]
  assert.deepEqual(await textsOf(await told(t, full, silent)), [
    'warning its only worker is silent since 42 s: perhaps killed; what runs there comes back when its lease ends',
  ])
  assert.deepEqual(await textsOf(await told(t, { ...full, limits, nextStart: 9, groupsAtLimit: 1 })), [
    'warning 1 group is at the limit: “Limits …” under Groups raises it for one, “Running at once, each group” under Settings for all',
    'warning held back by its rate; “Rate of starts” under Settings raises it',
  ])
  assert.deepEqual(await textsOf(await told(t, { ...full, nextStart: 9 })), [
    'warning held back by a pause that a handler asked for; it ends by itself',
  ])
  const { histograms: _, counts: none, ...rest } = await emptyStats()
  const counts = { ...none, waiting: 5, running: 20 }
  const stats = { ...rest, lastClaim: 0, histograms: [], counts }
  const unseen = { needed: null, arrivals: null, completions: null, failures: null, drain: null, oldest: null }
  const view: QueueView = {
    ...{ ...unseen, name: 'orders', may: { operate: true, payloads: true }, paused: false, capacity: null, counts },
    ...{ wait: { p50: null, p95: null, p99: null }, workers: 1, slots: 0, busy: 0, lanes: null, silent: null },
    overridden: false,
  }
  const slots = (more: Partial<QueueView>) =>
    attentionOf(stats, { ...view, ...more }, { dead: 0, lost: 0 }).map(({ text }) => text)
  const needs = 'more workers or a higher concurrency is needed'
  assert.deepEqual(slots({ slots: 20, busy: 20, needed: 40 }), [
    `all 20 slots are busy, and 40 would keep up: ${needs}`,
  ])
  assert.deepEqual(slots({ slots: 20, busy: 20, arrivals: 3, completions: 2 }), [
    `all 20 slots are busy, and the queue grows: ${needs}`,
  ])
  for (const more of [
    { slots: 21, busy: 20, needed: 40, arrivals: 3, completions: 2 },
    { slots: 20, busy: 20, arrivals: 2, completions: 3 },
    { slots: 20, busy: 20, needed: 20 },
    { slots: 0, needed: 40 },
  ]) {
    assert.deepEqual(slots(more), [])
  }
})

/** A dashboard of a store that can be taken away. */
async function fragile(t: TestContext, queues: number) {
  let refuses = false
  const store = meddled(await openStore('memory:', {}), {
    stats: async (input, next) => {
      if (!refuses) return next(input)
      // As long as a call takes that gets no answer.
      await sleep(300)
      throw new MillpondError('StoreUnavailable', 'it is away')
    },
  })
  const pond = new Millpond(store, LARGEST_PAYLOAD)
  after(t, () => pond.close({ timeout: 100 }))
  for (let n = 0; n < queues; n++) await pond.queue(`queue-${n}`).push(n)
  const dash = await startDashboard(t, pond)
  const away = (value: boolean) => {
    refuses = value
  }
  return { ...dash, away }
}

test('a store that does not answer is asked again soon, and is not slow because of that', async (t) => {
  const { base, away } = await fragile(t, 1)
  away(true)
  const ticks: Answer[] = []
  for await (const tick of ticksOf(base)) {
    ticks.push(tick.stores[0])
    if (ticks.length === 2) away(false)
    if (ticks.length === 3) break
  }
  assert.deepEqual(
    ticks.map(({ trouble, pace }) => [trouble, pace]),
    [...Array.from({ length: 2 }, () => ['StoreUnavailable', 2000]), [undefined, 2000]],
  )
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

  test('of a store that is down shows no figure and nothing green, and tells how much is not shown', {
    timeout: 60_000,
  }, async (t) => {
    const { base, away } = await fragile(t, 60)
    const { page, faults } = await visit(t, base)
    const state = page.locator('header [role=status]')
    await page.locator('table.queues').waitFor()
    assert.equal((await state.textContent())?.trim(), 'live')
    assert.equal(await page.locator('.attention li').count(), 50)
    await page.locator('.attention').getByText('10 more are not shown').waitFor()
    away(true)
    await page.getByRole('alert').getByText('The store does not answer: StoreUnavailable').waitFor()
    assert.equal(await page.locator('main dl.stats').count(), 0)
    assert.match((await state.textContent()) ?? '', /store does not answer/)
    assert.equal(await page.locator('.link.live').count(), 0)
    away(false)
    await page.locator('table.queues').waitFor()
    assert.equal((await state.textContent())?.trim(), 'live')
    assert.deepEqual(faults, [])
  })

  test('of workers, and of a queue, shows lanes and who is silent', { timeout: 60_000 }, async (t) => {
    const lanes = [{ minPriority: 8, reserve: 2 }]
    const beat = { queue: 'orders', host: 'h', pid: 1, slots: 10, busy: 1, since: 0, seen: 0, lanes }
    const workers = [
      { ...beat, id: 'a', silence: 1000 },
      { ...beat, id: 'b', silence: 42_000 },
      { ...beat, id: 'c', silence: 2000, lanes: null },
    ]
    const { base } = await told(t, { waiting: 5, running: 3, lastClaim: 0 }, workers)
    const { page, faults } = await visit(t, `${base}#/workers`)
    await page.getByText('lanes: 2 of 10 for priority >= 8').first().waitFor()
    await page.getByText('silent since 42 s').waitFor()
    await page.getByText('1.0 s ago').waitFor()
    await page.goto(`${base}#/queue/main/orders`)
    await page.getByText('1 of 3 workers is silent since 42 s').waitFor()
    await page.getByText('lanes: 2 of 20 for priority >= 8').waitFor()
    assert.deepEqual(faults, [])
  })
})
