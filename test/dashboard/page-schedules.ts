/** Schedules in a real browser: seen, run, paused, resumed, removed; and by nobody who may not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { ALL, type Answer, startDashboard } from './fixture.ts'

describe('schedules', { skip: noBrowser }, () => {
  test('run now, pause, resume, remove', { timeout: 60_000 }, async (t) => {
    const pond = await Millpond.open('memory:')
    after(t, () => pond.close({ timeout: 100 }))
    const digests = pond.queue('digests')
    await pond.schedule('weekly-digest', '0 9 * * 1', digests, { kind: 'weekly' }, { tz: 'Europe/Berlin' })
    const actions: string[] = []
    pond.on('action', ({ who, action, schedule }) => actions.push(`${who} ${action} ${schedule}`))
    const { base } = await startDashboard(t, pond)
    const { page, faults } = await visit(t, base)
    await page.getByRole('link', { name: 'Schedules' }).click()
    await page.getByText(/At 09:00, only on Monday/).waitFor()
    const paused = async () => (await pond.schedules.list())[0]?.paused
    await page.getByRole('button', { name: 'Pause weekly-digest' }).click()
    await until(async () => (await paused()) === true, 'the schedule to be paused')
    await page.getByRole('button', { name: 'Resume weekly-digest' }).click()
    await until(async () => (await paused()) === false, 'the schedule to go on')
    await page.getByRole('button', { name: 'Run now: weekly-digest' }).click()
    await page.getByText('"weekly"').waitFor()
    assert.equal((await digests.stats()).counts.waiting, 1)
    await page.goto(`${base}#/schedules`)
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await until(async () => (await pond.schedules.list()).length === 0, 'no schedule')
    await page.getByText('There is no schedule.').waitFor()
    const done = ['pause', 'resume', 'run', 'remove'].map((action) => `ada ${action}Schedule weekly-digest`)
    assert.deepEqual(actions, done)
    assert.deepEqual(faults, [])
  })
})

test('a schedule of a hidden queue does not exist, and a viewer changes none', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  await pond.schedule('secret', 'every 1h', pond.queue('hidden'), {})
  await pond.schedule('open', 'every 1h', pond.queue('shown'), {})
  const { ask } = await startDashboard(t, pond, { rights: () => ({ ...ALL, viewer: ['shown'], operator: ['hidden'] }) })
  const { body, text } = await ask('schedules')
  assert.deepEqual(
    body.schedules.map(({ name }: { name: string }) => name),
    ['open'],
  )
  assert.doesNotMatch(text, /secret|hidden/)
  assert.equal((await ask('schedule', { name: 'secret' })).status, 404)
  assert.equal((await ask('schedule', { name: 'open' })).status, 200)
  const change = { when: 'every 2h' }
  assert.equal((await ask('changeSchedule', { name: 'secret', change })).status, 404)
  assert.equal((await ask('changeSchedule', { name: 'open', change })).status, 403)
  for (const action of ['pauseSchedule', 'resumeSchedule', 'runSchedule', 'removeSchedule']) {
    assert.equal((await ask(action, { name: 'secret' })).status, 404, action)
    assert.equal((await ask(action, { name: 'none' })).status, 404, action)
    assert.equal((await ask(action, { name: 'open' })).status, 403, action)
  }
  assert.equal((await pond.schedules.list()).length, 2)
})

test('a schedule shows what became of its last times, and is changed as far as its rights go', async (t) => {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const queue = pond.queue<{ kind: string }>('digests')
  await pond.schedule('secondly', 'every 1s', queue, { kind: 'canary' })
  const worker = queue.work(() => 'sent')
  let rights = { ...ALL }
  const { ask } = await startDashboard(t, pond, { rights: () => rights })
  const history = async () => (await ask('schedule', { name: 'secondly' })).body.history as Answer[]
  await until(async () => (await history()).some(({ state }) => state === 'done'), 'a firing that is done')
  const [done] = (await history()).filter(({ state }) => state === 'done')
  assert.equal((await pond.job(done.id))?.queue, 'digests')
  await worker.close()
  const info = async () => (await pond.schedules.list())[0]
  const save = (change: object) => ask('changeSchedule', { name: 'secondly', change })
  rights = { ...ALL, payloads: false }
  assert.doesNotMatch((await ask('schedule', { name: 'secondly' })).text, /canary/)
  assert.equal((await save({ data: { kind: 'other' } })).status, 403)
  rights = { ...ALL, operator: false }
  assert.equal((await save({ when: 'every 2h' })).status, 403)
  rights = { ...ALL }
  for (const change of [{ when: 'never' }, { tz: 'Mars/Olympus' }, { name: 'x' }, { when: 7 }, null]) {
    assert.equal((await save(change as object)).status, 400, JSON.stringify(change))
  }
  assert.deepEqual((await save({ when: '0 9 * * 1', tz: 'Europe/Berlin', data: { kind: 'daily' } })).body, {
    outcome: 'changed',
  })
  assert.deepEqual([(await info())?.when, (await info())?.tz], ['0 9 * * 1', 'Europe/Berlin'])
  // A line that was replaced just now does not come back.
  assert.equal((await save({ when: 'every 1s', tz: 'UTC', data: { kind: 'canary' } })).status, 409)
  const { id } = (await ask('runSchedule', { name: 'secondly' })).body
  assert.deepEqual((await pond.job(id))?.data, { kind: 'daily' })
  const { body } = await ask('previewSchedule', { when: '0 9 * * 1' })
  assert.match(body.words, /09:00/)
  assert.equal((await ask('previewSchedule', { when: '99 * * * *' })).status, 400)
})
