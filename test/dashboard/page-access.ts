/** The page for everybody: axe-core finds nothing, the keyboard reaches everything, a token signs in, hidden things are not shown. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { actionDone } from '../../src/pond/actions.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { axe } from './axe.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

async function filled(t: TestContext) {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  pond.on('dead', () => {})
  pond.on('failed', () => {})
  const queue = pond.queue('emails', {
    capacity: 10,
    retry: { attempts: 1 },
    limits: { running: 2, group: { running: 1 } },
  })
  const { id: dead } = await queue.push(
    { to: 'ada', big: 9007199254740993n, bytes: new Uint8Array([1, 2]) },
    { group: 'a', key: 'k' },
  )
  const { id: running } = await queue.push({ stays: true }, { group: 'b' })
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  after(t, end)
  queue.work(
    async (job, ctx) => {
      ctx.log('began', { step: 1 })
      if ((job.data as { stays?: boolean }).stays) await over
      throw new Error('no such address')
    },
    { concurrency: 2 },
  )
  await until(async () => (await pond.job(dead))?.state === 'dead', 'a job to be dead')
  for (let n = 0; n < 8; n++) await queue.push({ stays: true, n }, { group: 'b' })
  const { id: scheduled } = await queue.push({ n: 9 }, { delay: '1h' })
  await pond.queue('idle').push({})
  await pond.queue('idle').pause()
  await actionDone(pond, { who: 'ada', through: 'cli', action: 'pause', queue: 'idle', count: 1 })
  await pond.schedule('weekly-digest', '0 9 * * 1', pond.queue('idle'), {})
  return { pond, dead, running, scheduled }
}

describe('the page for everybody', { skip: noBrowser }, () => {
  for (const [dark, width] of [
    [false, 1280],
    [true, 390],
  ] as const) {
    test(`axe-core finds nothing: ${dark ? 'dark' : 'light'}, ${width} wide`, { timeout: 120_000 }, async (t) => {
      const { pond, dead, running, scheduled } = await filled(t)
      const { base } = await startDashboard(t, pond)
      const { page, faults } = await visit(t, base, { dark, width })
      const look = async (hash: string, shown: string, open?: () => Promise<unknown>) => {
        await page.goto(`${base}${hash}`)
        await page.locator(shown).first().waitFor()
        await open?.()
        assert.deepEqual(await axe(page), [], hash)
        const wide = Number(
          await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
        )
        assert.ok(wide <= 0, `${hash} is ${wide} pixels too wide`)
      }
      await look('#/', 'table.queues')
      await look('#/queue/main/emails?q=state:waiting', 'table.jobs')
      await look('#/queue/main/emails?q=state:dead', 'table.jobs', async () => {
        await page.getByRole('combobox').fill('sta')
        await page.getByRole('option').first().waitFor()
      })
      await look('#/queue/main/emails?q=state:nonsense', '.fault')
      await look('#/queue/main/emails/charts', '.chart canvas')
      await look('#/queue/main/emails/groups', 'table.groups')
      await look('#/queue/main/emails/settings', 'table.settings', () =>
        page.getByRole('button', { name: 'Edit Lease' }).click(),
      )
      await look('#/workers', 'table.workers')
      await look('#/alerts', '.empty')
      await look('#/schedule/main/weekly-digest', '.facts', () => page.getByRole('button', { name: 'Edit …' }).click())
      await page.keyboard.press('Escape')
      await look('#/actions', 'table.actions-log')
      await look('#/schedules', 'table.schedules', () => page.locator('summary').click())
      await look(`#/job/main/${dead}`, '.stack')
      await look(`#/job/main/${running}`, '.timeline')
      await look(`#/job/main/${scheduled}`, '.timeline', () => page.getByRole('button', { name: 'Edit …' }).click())
      await page.keyboard.press('Escape')
      await look('#/queue/main/emails?q=state:dead', 'table.jobs', async () => {
        await page.getByRole('button', { name: 'Retry all …' }).click()
        await page.locator('.huge').waitFor()
      })
      await page.keyboard.press('Escape')
      await page.keyboard.press('Control+k')
      await page.getByRole('option').first().waitFor()
      assert.deepEqual(await axe(page), [], 'the palette')
      assert.deepEqual(faults, [])
    })
  }

  test('names of queues break between their words, and no width is too small for the table', {
    timeout: 60_000,
  }, async (t) => {
    const pond = await Millpond.open('memory:')
    after(t, () => pond.close({ timeout: 100 }))
    for (const name of ['reports/monthly', `all.of:many-parts/${'x'.repeat(60)}`]) {
      await pond.queue(name).push({})
      await pond.queue(name).override({ limits: { running: 1 } })
      await pond.queue(name).pause()
    }
    const { base } = await startDashboard(t, pond)
    const { page, faults } = await visit(t, base)
    const name = page.locator('.queues th a', { hasText: 'reports/monthly' })
    for (const width of [1280, 1100, 1001, 900, 861, 770, 390]) {
      await page.setViewportSize({ width, height: 800 })
      await name.waitFor()
      const { height = 0 } = (await name.boundingBox()) ?? {}
      assert.ok(height < 30, `the name takes ${height} pixels at ${width}`)
      const wide = Number(await page.evaluate('document.documentElement.scrollWidth'))
      assert.ok(wide <= width, `${wide} pixels in a window of ${width}`)
    }
    assert.deepEqual(faults, [])
  })

  test('the keyboard alone: palette, rows, search with suggestions, and up', { timeout: 60_000 }, async (t) => {
    const { pond } = await filled(t)
    const { base } = await startDashboard(t, pond)
    const { page } = await visit(t, base)
    await page.locator('table.queues').waitFor()
    await page.keyboard.press('Control+k')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('emails')
    await page.getByRole('option', { name: 'emails queue' }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'emails' }).waitFor()
    await page.locator('table.jobs').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('st')
    await page.getByRole('option', { name: /^state:/ }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('option', { selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.keyboard.type('de')
    await page.getByRole('option', { name: 'state:dead' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.getByRole('option', { selected: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('no such address').waitFor()
    assert.match(page.url(), /q=state%3Adead$/)
    await page.locator('h1').click()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Last error' }).waitFor()
    await page.getByText('9007199254740993').waitFor()
    await page.getByText('01 02').waitFor()
    await page.keyboard.press('u')
    await page.locator('table.queues').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await page.locator('table.workers').waitFor()
  })

  test('a token signs in, and stays out of every URL; who may only look sees no action and no payload', {
    timeout: 60_000,
  }, async (t) => {
    const { pond, dead } = await filled(t)
    const token = 'a-token-of-some-length'
    const { base } = await startDashboard(t, pond, { tokens: [{ token, who: 'reader' }] })
    const { page, requests, faults } = await visit(t, base)
    const { x = 0, width = 0 } = (await page.locator('form').boundingBox()) ?? {}
    assert.equal(x + width / 2, 640, 'the form is in the middle of the window')
    await page.getByLabel('Token').fill('a-wrong-token-of-some-length')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('table.queues').waitFor()
    await page.goto(`${base}#/job/main/${dead}`)
    await page.getByText('You may not see payloads of this queue.').first().waitFor()
    await page.getByText('You may not see messages of errors').waitFor()
    for (const name of ['Retry', 'Remove']) assert.equal(await page.getByRole('button', { name }).count(), 0)
    await page.goto(`${base}#/queue/main/emails/settings`)
    await page.locator('table.settings').waitFor()
    for (const name of [/Edit/, 'Pause']) assert.equal(await page.getByRole('button', { name }).count(), 0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
    assert.ok(requests.every((url) => !url.includes(token)))
    assert.ok(!(await page.content()).includes(token))
    assert.deepEqual(faults, [])
  })
})
