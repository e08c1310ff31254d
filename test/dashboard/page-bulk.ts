/** The log of actions: kept in the store by every door, shown to those who may see the queue, and changed by nobody here. */

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Rights } from '../../src/dashboard/index.ts'
import { Millpond } from '../../src/index.ts'
import { ACTIONS_QUEUE, actionDone, keptAction } from '../../src/pond/actions.ts'
import { internalsOf } from '../../src/pond/internals.ts'
import { STORES } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { ALL, type Answer, firstTick, startDashboard } from './fixture.ts'

async function pondOf(t: TestContext, url = 'memory:'): Promise<Millpond> {
  const pond = await Millpond.open(url)
  after(t, () => pond.close({ timeout: 100 }))
  return pond
}

const told = ({ body }: { body: Answer }) =>
  body.actions.map(({ who, through, action, queue, count }: Answer) => [who, through, action, queue, count])

for (const { name, place, skip = false } of STORES.filter(({ name: one }) => one !== 'pgbouncer')) {
  test(`kept in the store, newest first: ${name}`, { skip, timeout: 60_000 }, async (t) => {
    const { url, remove } = place(scratch(t))
    if (remove !== undefined) after(t, remove)
    const pond = await pondOf(t, url)
    const { ask, base } = await startDashboard(t, pond)
    assert.deepEqual((await ask('actions')).body, { actions: [], next: null, isPart: false })
    const queue = pond.queue('orders')
    for (let n = 0; n < 5; n++) await queue.push({ secret: 'canary' })
    await ask('pause', { queue: 'orders' })
    await ask('bulk', { queue: 'orders', action: 'cancel', search: { state: 'waiting', text: 'canary' } })
    await ask('bulk', { queue: 'orders', action: 'cancel', search: { state: 'waiting' } })
    const all = await ask('actions')
    const by = ['ada', 'dashboard']
    assert.deepEqual(told(all), [
      [...by, 'cancelAll', 'orders', 5],
      [...by, 'pause', 'orders', 1],
    ])
    assert.doesNotMatch(all.text, /canary/)
    assert.equal(all.body.actions[0].detail, 'state: waiting, data: …')
    const first = await ask('actions', { limit: 1, queue: 'orders' })
    assert.deepEqual(told(first), [[...by, 'cancelAll', 'orders', 5]])
    assert.deepEqual(told(await ask('actions', { after: first.body.next })), [[...by, 'pause', 'orders', 1]])
    const settings = await pond.queue(ACTIONS_QUEUE).settings()
    assert.equal(settings.find((one) => one.name === 'keepDone')?.value, 90 * 86_400_000)
    const { stores } = await firstTick(base)
    assert.deepEqual(
      stores[0].queues.map((one: Answer) => one.name),
      ['orders'],
    )
  })
}

test('who may not see a queue sees no action of it, and nobody changes the log', async (t) => {
  const pond = await pondOf(t)
  await pond.queue('mine').push({})
  await pond.queue('other').push({})
  const { ask } = await startDashboard(t, pond, {
    rights: (request) => JSON.parse(request.headers.get('x-rights') ?? 'null') as Rights,
  })
  const as = (rights: Rights) => ({ 'x-rights': JSON.stringify(rights) })
  for (const queue of ['other', 'mine', 'other']) await ask('pause', { queue }, as(ALL))
  const seen = await ask('actions', {}, as({ viewer: ['mine'] }))
  assert.deepEqual(told(seen), [['ada', 'dashboard', 'pause', 'mine', 1]])
  assert.doesNotMatch(seen.text, /other/)
  assert.equal((await ask('actions', { queue: 'other' }, as({ viewer: ['mine'] }))).status, 404)
  const [entry] = await pond.queue(ACTIONS_QUEUE).jobs('done', { limit: 1 })
  for (const [name, body] of [
    ['pause', { queue: ACTIONS_QUEUE }],
    ['override', { queue: ACTIONS_QUEUE, settings: { keep: { done: 0 } } }],
    ['bulk', { queue: ACTIONS_QUEUE, action: 'remove', search: { state: 'done' } }],
    ['remove', { id: entry?.id }],
    ['requeue', { id: entry?.id }],
    ['update', { id: entry?.id, change: { priority: 1 } }],
  ] as const) {
    assert.equal((await ask(name, body, as(ALL))).status, 403, name)
  }
  assert.equal((await pond.queue(ACTIONS_QUEUE).jobs('done')).length, 3)
})

test('entries of another shape, or of another queue than their group, are left out', async (t) => {
  const pond = await pondOf(t)
  await actionDone(pond, { who: 'ada', through: 'cli', action: 'pause', queue: 'a', count: 1 })
  const { jobs } = await internalsOf(pond).store.operations.list({ queue: ACTIONS_QUEUE, state: 'done', limit: 1 })
  const [record] = jobs
  assert.ok(record !== undefined)
  assert.equal(keptAction(record)?.who, 'ada')
  assert.equal(keptAction({ ...record, group: 'b' }), undefined)
  for (const body of [
    '{"who":1}',
    '[]',
    '7',
    'null',
    '{',
    '{"who":"a","through":"x","action":"b","queue":"a","count":1}',
  ]) {
    assert.equal(keptAction({ ...record, data: { encoding: 'json', body } }), undefined, body)
  }
})

test('what cannot be kept is told of, and the action stays done', async (t) => {
  const pond = await pondOf(t)
  const errors: string[] = []
  pond.on('error', ({ code }) => errors.push(code))
  const { MillpondError } = await import('../../src/index.ts')
  Object.assign(internalsOf(pond).store.operations, {
    restore: () => Promise.reject(new MillpondError('StoreUnavailable', 'it is away')),
  })
  await pond.queue('orders').push({})
  const { ask } = await startDashboard(t, pond)
  assert.equal((await ask('pause', { queue: 'orders' })).status, 200)
  assert.deepEqual(errors, ['StoreUnavailable'])
  assert.equal((await pond.queue('orders').stats()).paused, true)
})

test('tells what settings were and are, and which jobs a bulk change was for, without a text', async (t) => {
  const pond = await pondOf(t)
  pond.on('dead', () => {})
  const queue = pond.queue('orders', { retry: { attempts: 1 }, limits: { running: 1 }, lease: '30s' })
  const { ask } = await startDashboard(t, pond)
  await queue.push({ secret: 'canary' }, { group: 'tenant-7' })
  const worker = queue.work(() => Promise.reject(new Error('canary')))
  await until(async () => (await queue.stats()).counts.dead === 1, 'a dead job')
  await worker.close()
  await ask('override', { queue: 'orders', settings: { limits: { running: 20 }, lease: '2m' } })
  await ask('clear', { queue: 'orders', names: ['running'] })
  const search = { state: 'dead', group: 'tenant-7', errorText: 'canary', data: { path: ['secret'], value: 'canary' } }
  await ask('bulk', { queue: 'orders', action: 'requeue', search })
  const { body, text } = await ask('actions')
  assert.deepEqual(
    body.actions.map(({ detail }: Answer) => detail),
    ['state: dead, group: tenant-7, error: …, data: …', 'running 20 → 1', 'lease 30s → 2m, running 1 → 20'],
  )
  assert.doesNotMatch(text, /canary|secret/)
})

describe('the page', { skip: noBrowser }, () => {
  test('lists what was done, with links', { timeout: 60_000 }, async (t) => {
    const pond = await pondOf(t)
    const { id } = await pond.queue('orders').push({})
    const { base } = await startDashboard(t, pond)
    const { page, faults } = await visit(t, `${base}#/job/main/${id}`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: /^Cancel it|Yes/ }).click()
    await until(async () => (await pond.job(id))?.state === 'cancelled', 'the job to be cancelled')
    await page.getByRole('link', { name: 'Actions' }).click()
    await page.getByRole('row', { name: /ada.*cancel.*orders/ }).waitFor()
    await page.getByRole('link', { name: id.slice(-12) }).click()
    await page.locator('.timeline').waitFor()
    assert.deepEqual(faults, [])
  })
})
