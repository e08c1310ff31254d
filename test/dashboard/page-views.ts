/** The views that only some jobs and queues have, on every store, with what is hard to draw: graphs, schedules, alerts, actions, workers, bulk changes. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { Millpond } from '../../src/index.ts'
import { STORES } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { isDeep } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { axe } from './axe.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'
import { alarms, extremes, LONG, PARENTS } from './scene.ts'

const [DESKTOP, PHONE] = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
]

/** Nobody has to scroll sideways. */
const isNarrow = (page: Page, what: string) =>
  until(
    async () =>
      0 === (await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')),
    `${what} to fit the window`,
    5000,
  )

async function opened(t: TestContext, url: string) {
  const pond = await Millpond.open(url)
  after(t, () => pond.close({ timeout: 100 }))
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  after(t, release)
  const scene = await extremes(pond, released)
  after(t, alarms(pond))
  const { base } = await startDashboard(t, pond)
  const { page, faults } = await visit(t, base)
  after(t, () => assert.deepEqual(faults, []))
  return { pond, base, page, ...scene }
}

// Of each kind of store in a deep run.
for (const { name: store, place, skip = false } of STORES.filter(({ name }) => isDeep || name === 'memory')) {
  describe(`rare views: ${store}`, { skip: noBrowser || skip }, () => {
    test('each is drawn, at any width, and does what it offers', { timeout: 120_000 }, async (t) => {
      const { url, remove } = place(scratch(t))
      if (remove !== undefined) after(t, remove)
      const { pond, base, page, ...scene } = await opened(t, url)
      const queue = encodeURIComponent(LONG)
      const look = async (hash: string, shown: string) => {
        await page.goto(`${base}${hash}`)
        await page.locator(shown).first().waitFor()
        // How it looks is the same on every store.
        if (store !== 'memory') return
        for (const size of [PHONE, DESKTOP]) {
          await page.setViewportSize(size)
          await isNarrow(page, `${hash} at ${size.width}`)
        }
        assert.deepEqual(await axe(page), [], hash)
      }

      await look('#/', 'table.queues')
      await page
        .getByRole('link', { name: /statements\/parts no worker has ever asked for jobs, 30 jobs wait/ })
        .waitFor()

      await look(`#/job/main/${scene.whole}`, '.relatives')
      await page.locator('.why').getByText(`waits: ${PARENTS} jobs have not ended.`).waitFor()
      const parents = page.getByRole('list', { name: 'Parents' })
      await parents.getByText('and 24 more').waitFor()
      await page.getByRole('button', { name: 'Show more' }).click()
      await parents.getByText('and 10 more').waitFor()
      assert.equal(await parents.getByRole('link').count(), 20)
      // One to each of the links and to those that are not shown, and three on the other side.
      assert.equal(await page.locator('.relatives path').count(), 20 + 1 + 3)
      await page.getByText(`waits for ${PARENTS}, 3 wait for it`).waitFor()
      await parents.getByRole('link').first().focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: scene.part }).waitFor()
      await page.getByRole('list', { name: 'Children' }).getByRole('link').first().click()
      await page.getByRole('heading', { name: scene.whole }).waitFor()
      for (const [id, text] of [
        [scene.dead, /connect ETIMEDOUT/],
        [scene.undecodable, /It cannot be decoded/],
        [scene.running, /a third of the statements/],
      ] as const) {
        await look(`#/job/main/${id}`, '.timeline')
        await page.getByText(text).first().waitFor()
      }

      await look('#/workers', 'table.workers')
      assert.ok((await page.getByRole('row', { name: /ip-10-20-30-40/ }).count()) >= 5)

      await look('#/alerts', 'table.alerts .badge.alarm')
      await page.getByRole('row', { name: /too many wait every queue.*firing/ }).waitFor()

      await look('#/actions', 'table.actions-log')
      await page.getByRole('row', { name: /augusta.*override.*rate 100\/s → 60\/s/ }).waitFor()

      await look(`#/queue/main/${queue}/groups`, 'table.groups')
      await look(`#/queue/main/${queue}/charts`, '.chart')
      await page
        .locator('.chart .u-value')
        .getByText(/:\d\d$/)
        .first()
        .waitFor()

      await look('#/schedules', 'table.schedules')
      await page.getByRole('link', { name: 'heartbeat' }).click()
      await page.getByRole('heading', { name: 'Its last times' }).waitFor()
      await until(async () => (await page.locator('.history a').count()) > 0, 'a time with its job')
      await page.getByRole('button', { name: 'Edit …' }).click()
      await page.getByLabel('When').fill('never')
      await page.getByRole('alert').waitFor()
      assert.equal(await page.getByRole('button', { name: 'Save' }).isDisabled(), true)
      await page.getByLabel('When').fill('0 9 * * 1')
      await page
        .getByText(/At 09:00, only on Monday/)
        .first()
        .waitFor()
      await page.getByLabel('Data, as JSON').fill('{"image":')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByText('The data are not JSON.').waitFor()
      await page.getByLabel('Data, as JSON').fill('{"image":7}')
      await page.getByRole('button', { name: 'Save' }).click()
      const schedule = async () => (await pond.schedules.list()).find(({ name }) => name === 'heartbeat')
      await until(async () => (await schedule())?.when === '0 9 * * 1', 'the schedule to be changed')

      await look(`#/queue/main/${queue}?q=${encodeURIComponent('state:waiting data.customer.id:7')}`, 'table.jobs')
      assert.equal(await page.locator('table.jobs tbody tr').count(), 1)
      const search = page.getByRole('combobox')
      const found = await search.inputValue()
      // A place that is not whole yet finds nothing, but what may come next is known.
      await search.fill('data.c')
      await page.getByText('No job that is waiting fits the search.').waitFor()
      await page.getByRole('option', { name: 'data.customer.id:' }).click()
      await search.fill(found)
      await page.locator('table.jobs').waitFor()
      await page.getByRole('button', { name: 'Cancel all …' }).click()
      await page.locator('dialog .huge').getByText('1 job', { exact: true }).waitFor()
      await page.setViewportSize(PHONE)
      await isNarrow(page, 'the preview')
      await page.getByRole('button', { name: 'Cancel 1 job' }).click()
      await page.locator('dialog').getByText('Done: 1 cancelled').waitFor()
      await until(async () => (await pond.queue(LONG).stats()).counts.cancelled === 1, 'one job to be cancelled')
    })
  })
}
