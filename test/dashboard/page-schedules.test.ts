/** Schedules in a real browser: seen, run, paused, resumed, removed; and by nobody who may not. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after as undo } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { closeBrowser, noBrowser, visit } from './browser.ts'
import { ALL, startDashboard } from './fixture.ts'

after(closeBrowser)

describe('schedules', { skip: noBrowser }, () => {
  test('run now, pause, resume, remove', { timeout: 60_000 }, async (t) => {
    const pond = await Millpond.open('memory:')
    undo(t, () => pond.close({ timeout: 100 }))
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
  undo(t, () => pond.close({ timeout: 100 }))
  await pond.schedule('secret', 'every 1h', pond.queue('hidden'), {})
  await pond.schedule('open', 'every 1h', pond.queue('shown'), {})
  const { ask } = await startDashboard(t, pond, { rights: () => ({ ...ALL, viewer: ['shown'], operator: ['hidden'] }) })
  const { body, text } = await ask('schedules')
  assert.deepEqual(
    body.schedules.map(({ name }: { name: string }) => name),
    ['open'],
  )
  assert.doesNotMatch(text, /secret|hidden/)
  for (const action of ['pauseSchedule', 'resumeSchedule', 'runSchedule', 'removeSchedule']) {
    assert.equal((await ask(action, { name: 'secret' })).status, 404, action)
    assert.equal((await ask(action, { name: 'none' })).status, 404, action)
    assert.equal((await ask(action, { name: 'open' })).status, 403, action)
  }
  assert.equal((await pond.schedules.list()).length, 2)
})
