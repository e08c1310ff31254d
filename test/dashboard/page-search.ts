/** What a person in a hurry does with the search box and the settings: types, and clicks what is beside it. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

async function opened(t: TestContext, tab = '') {
  const pond = await Millpond.open('memory:')
  after(t, () => pond.close({ timeout: 100 }))
  pond.on('dead', () => {})
  const queue = pond.queue('orders', { retry: { attempts: 1 }, limits: { running: 7 } })
  for (let n = 0; n < 9; n++) await queue.push({ n }, { group: `tenant-${n % 3}` })
  const worker = queue.work(() => Promise.reject(new Error('upstream TIMEOUT')))
  await until(async () => (await queue.stats()).counts.dead === 9, 'nine dead jobs')
  await worker.close()
  const { base } = await startDashboard(t, pond)
  const visited = await visit(t, `${base}#/queue/main/orders${tab}`)
  after(t, () => assert.deepEqual(visited.faults, []))
  const { page } = visited
  return { queue, page, rows: page.locator('table.jobs tbody tr'), box: page.getByRole('combobox') }
}

describe('the search box', { skip: noBrowser }, () => {
  test('a bulk change takes what the box says, also before it is searched for', { timeout: 60_000 }, async (t) => {
    const { queue, page, rows, box } = await opened(t)
    await until(async () => (await rows.count()) === 9, 'all nine')
    // No time passes in the page: what is typed is not searched for by itself.
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 60_000)
    await box.fill('state:dead group:tenant-1')
    await page.getByText('Searching …').waitFor()
    assert.equal(await rows.count(), 0, 'no job of the search before')
    await page.getByRole('button', { name: 'Remove all …' }).click()
    await page.locator('dialog .huge').getByText('3 jobs').waitFor()
    await page.locator('dialog code').getByText('state:dead group:tenant-1').waitFor()
    await page.locator('dialog .sample').getByText('upstream TIMEOUT').first().waitFor()
    await page.getByRole('button', { name: 'Remove 3 jobs' }).click()
    await page.getByText('Done: 3 removed').waitFor()
    assert.equal((await queue.stats()).counts.dead, 6)
    await page.getByRole('button', { name: 'Close' }).last().click()
    assert.match(page.url(), /tenant-1$/)
    await box.fill('state:nothing')
    await page.getByRole('button', { name: 'Remove all …' }).click()
    await page.getByText(/state is one of/).waitFor()
    assert.equal(await page.locator('dialog').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Remove all …' }).isDisabled(), true)
    await box.fill('state:waiting')
    await page.getByRole('button', { name: 'Remove all …' }).waitFor()
    assert.equal((await queue.stats()).counts.dead, 6)
  })

  test('what is typed is searched for by itself; letters after it stay', { timeout: 60_000 }, async (t) => {
    const { page, rows, box } = await opened(t)
    await box.pressSequentially('state:dead group:tenant-2 ')
    await until(async () => (await rows.count()) === 3, 'three jobs without Enter')
    assert.equal(await box.inputValue(), 'state:dead group:tenant-2 ')
    await page.getByText('3 jobs match', { exact: true }).waitFor()
    await box.pressSequentially('error:timeout')
    await page.getByText('TIMEOUT is not timeout').waitFor()
    assert.equal(await box.inputValue(), 'state:dead group:tenant-2 error:timeout')
    await box.fill('error:TIMEOUT')
    await until(async () => (await rows.count()) === 9, 'all nine')
  })

  test('no job of another search is shown while the answer is on its way', { timeout: 60_000 }, async (t) => {
    const { page, rows, box } = await opened(t)
    await until(async () => (await rows.count()) === 9, 'all nine')
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    after(t, release)
    await page.route('**/api/jobs', async (route) => {
      await released
      await route.continue()
    })
    await box.fill('group:tenant-0')
    await page.keyboard.press('Enter')
    await until(() => page.url().endsWith('tenant-0'), 'the address to change')
    await page.getByText('Searching …').waitFor()
    assert.equal(await rows.count(), 0)
    release()
    await until(async () => (await rows.count()) === 3, 'three jobs')
  })
})

describe('a setting', { skip: noBrowser }, () => {
  test('typing takes the place of the value, and the change is shown', { timeout: 60_000 }, async (t) => {
    const { queue, page } = await opened(t, '/settings')
    await page.getByRole('button', { name: 'Edit Running at once', exact: true }).click()
    await page.keyboard.type('20')
    await page.getByText('7 → 20').waitFor()
    await page.keyboard.press('Enter')
    const running = async () => (await queue.settings()).find(({ name }) => name === 'running')?.value
    await until(async () => (await running()) === 20, 'the limit to be 20')
  })
})
