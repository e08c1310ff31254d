/** What a page must not do to its reader: move the focus by itself, lose what was typed, stay silent, or begin a view in its middle. */

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { Millpond } from '../../src/index.ts'
import { internalsOf } from '../../src/pond/internals.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

const JOBS = 60

async function opened(t: TestContext, hash: string) {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  const queue = pond.queue('orders')
  for (let n = 0; n < JOBS; n++) await queue.push({ n }, { group: `tenant-${n % 3}` })
  for (let n = 0; n < 40; n++) await pond.queue(`queue-${n}`).push(n)
  await pond.schedule('digest', '0 9 * * 1', queue, { week: 9 })
  const { base } = await startDashboard(t, pond)
  const { page, faults } = await visit(t, `${base}${hash}`)
  after(t, () => assert.deepEqual(faults, []))
  return { pond, queue, page, base }
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const isFocused = (page: Page, name: string) => until(() => hasFocus(page, name), `the focus to be on ${name}`)
const hasFocus = (page: Page, name: string) => button(page, name).evaluate((one) => one.matches(':focus'))
/** The page has drawn itself again, as it does at every look at the store: a waiting job's time has gone on. */
const redrawn = async (page: Page) => {
  const text = () => page.locator('.timeline .now').textContent()
  const before = await text()
  await until(async () => (await text()) !== before, 'the next look')
}

describe('the manners of the page', { skip: noBrowser }, () => {
  test('a question keeps the focus where the reader has it, and Escape is no', { timeout: 60_000 }, async (t) => {
    const { page, queue } = await opened(t, '#/queue/main/orders?q=state:waiting')
    await page.locator('table.jobs a').first().click()
    await button(page, 'Remove').click()
    await isFocused(page, 'Remove it')
    await page.keyboard.press('Tab')
    await isFocused(page, 'No')
    await redrawn(page)
    assert.ok(await hasFocus(page, 'No'), 'the focus is still on No')
    await page.keyboard.press('Enter')
    await isFocused(page, 'Remove')
    await page.keyboard.press('Enter')
    await isFocused(page, 'Remove it')
    await page.keyboard.press('Escape')
    await isFocused(page, 'Remove')
    assert.equal((await queue.stats()).counts.waiting, JOBS)
  })

  test('a save that fails keeps the dialog, what was typed, and says why in it', { timeout: 60_000 }, async (t) => {
    const { page, base } = await opened(t, '#/schedule/main/digest')
    await page.route(/api\/(changeSchedule|update|limitGroup)$/, (route) =>
      route.fulfill({ status: 503, json: { detail: 'The store is away.' } }),
    )
    const isTold = async () => {
      await button(page, 'Save').click()
      await page.locator('dialog [role=alert]').getByText('The store is away.').waitFor()
    }
    await button(page, 'Edit …').click()
    await page.getByLabel('When').fill('0 8 * * 1')
    await isTold()
    assert.equal(await page.getByLabel('When').inputValue(), '0 8 * * 1')
    await page.goto(`${base}#/queue/main/orders?q=state:waiting`)
    await page.locator('table.jobs a').first().click()
    await button(page, 'Edit …').click()
    await page.getByLabel('Priority, 0 to 9').fill('8')
    await isTold()
    assert.equal(await page.getByLabel('Priority, 0 to 9').inputValue(), '8')
  })

  test('a bulk change that is stopped says so, how far it came, and can be left', { timeout: 60_000 }, async (t) => {
    const { page, queue, pond } = await opened(t, '#/queue/main/orders?q=state:waiting')
    const { bulk } = internalsOf(pond).store.operations
    const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
    after(t, stop)
    let steps = 0
    // One step is done; the next waits until the reader has had enough.
    Object.assign(internalsOf(pond).store.operations, {
      bulk: async (request: Parameters<typeof bulk>[0]) => {
        const isPreview = request.limit === 0
        if (!isPreview && steps++ > 0) await stopped
        return bulk.call(internalsOf(pond).store.operations, { ...request, limit: isPreview ? 0 : 20 })
      },
    })
    await button(page, 'Cancel all …').click()
    await page.getByRole('button', { name: /^Cancel (about )?60 jobs/ }).click()
    await page
      .locator('dialog [role=status]')
      .getByText(/^20 cancelled/)
      .waitFor()
    await isFocused(page, 'Stop')
    await page.keyboard.press('Enter')
    await page
      .locator('dialog [role=status]')
      .getByText(/^Stopped: 20 cancelled/)
      .waitFor()
    await page.locator('dialog footer').getByRole('button', { name: 'Close' }).click()
    assert.equal(await page.locator('dialog').count(), 0)
    assert.equal((await queue.stats()).counts.cancelled, 20)
  })

  test('a view begins at its top, with the focus in it; the way back leads to where one was', {
    timeout: 60_000,
  }, async (t) => {
    const { page } = await opened(t, '#/queue/main/orders?q=state:waiting')
    const top = async () => Number(await page.evaluate('scrollY'))
    const last = page.locator('table.jobs a').nth(45)
    await last.click()
    await page.locator('.timeline').waitFor()
    assert.equal(await top(), 0)
    await until(
      async () => (await page.evaluate('document.activeElement.localName')) === 'main',
      'the focus in the view',
    )
    await page.goBack()
    await last.scrollIntoViewIfNeeded()
    assert.notEqual(await top(), 0)
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.locator('table.queues').getByText('queue-39').waitFor()
    assert.equal(await top(), 0, 'a long view, too, begins at its top')
    await page.goBack()
    await last.waitFor()
    const box = page.getByRole('combobox')
    await box.fill('state:waiting group:tenant-1')
    await page.getByRole('status').getByText('20 jobs found', { exact: true }).waitFor({ state: 'attached' })
    assert.ok(await box.evaluate((one) => one.matches(':focus')), 'a search leaves the focus in its box')
  })

  test('what was copied, and that nothing is found, is said', { timeout: 60_000 }, async (t) => {
    const { page } = await opened(t, '#/queue/main/orders?q=state:waiting')
    await page.context().grantPermissions(['clipboard-write', 'clipboard-read'])
    await page.locator('table.jobs a').first().click()
    await button(page, 'Copy Data').click()
    await page.getByRole('status').getByText('Copied').waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), '{\n  "n": 0\n}')
    await page.evaluate('Object.defineProperty(navigator, "clipboard", { value: undefined })')
    await button(page, 'Copy the id').click()
    await page.getByText('does not let this page copy').waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type('nothing-of-this-name')
    await page.getByText('Nothing has this name.').waitFor()
  })
})
