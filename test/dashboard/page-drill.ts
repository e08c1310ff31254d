/**
 * The drill of an on-call engineer at the page: find why jobs wait, raise the limit, retry exactly the 500 dead jobs of one tenant out of
 * 10,000, and see that all of it lasts over a restart of the workers.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

const TENANTS = 20
const JOBS = 10_000
/** As the program has it, before and after its restart. */
const OPTIONS = { retry: { attempts: 1 }, limits: { running: 1 } }

describe('the drill', { skip: noBrowser }, () => {
  test('why, raise, retry one tenant, restart', { timeout: 180_000 }, async (t) => {
    const url = `sqlite:${join(scratch(t), 'jobs.db')}?sync=normal`
    const open = async () => {
      const pond = await Millpond.open(url)
      after(t, () => pond.close({ timeout: 100 }))
      pond.on('dead', () => {})
      pond.on('overridden', () => {})
      return pond
    }
    const first = await open()
    const dying = first.queue('orders', { ...OPTIONS, limits: { running: null } })
    const each = (_: unknown, n: number) => ({ group: `tenant-${n % TENANTS}` })
    await dying.pushMany(
      Array.from({ length: JOBS }, (_, n) => ({ n })),
      { each },
    )
    const failing = dying.work(() => Promise.reject(new Error('upstream timeout')), { concurrency: 500 })
    await until(async () => (await dying.stats()).counts.dead === JOBS, `${JOBS} dead jobs`, 120_000)
    await failing.close()

    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    after(t, release)
    const queue = first.queue('orders', OPTIONS)
    for (let n = 0; n < 30; n++) await queue.push({ n })
    const worker = queue.work(() => released, { concurrency: 50 })
    await until(async () => (await queue.stats()).counts.running === 1, 'one job to run')

    const { base } = await startDashboard(t, await open())
    const { page, faults } = await visit(t, base)
    const began = performance.now()
    await page.getByRole('link', { name: /orders at its limit: 1 run/ }).click()
    await page.getByRole('button', { name: 'Edit Running at once', exact: true }).click()
    await page.getByRole('textbox', { name: 'Running at once', exact: true }).fill('100')
    await page.getByRole('button', { name: 'Save' }).click()
    await until(async () => (await queue.stats()).counts.running > 20, 'more jobs to run')
    await page.goto(`${base}#/queue/main/orders`)
    await page.getByRole('combobox', { name: 'Search jobs' }).fill('state:dead group:tenant-7 error:"upstream timeout"')
    await page.keyboard.press('Enter')
    await page.locator('table.jobs').getByText('upstream timeout').first().waitFor()
    await page.getByRole('button', { name: 'Retry all …' }).click()
    await page.locator('dialog .huge').getByText('500 jobs').waitFor()
    await page.getByRole('button', { name: /^Retry 500 jobs$/ }).click()
    await page.getByText('Done: 500 retried').waitFor()
    t.diagnostic(`the drill took the page ${Math.round(performance.now() - began)} ms`)

    release()
    await worker.close()
    await first.close({ timeout: 100 })
    const second = await open()
    const again = second.queue('orders', OPTIONS)
    again.work(() => 'shipped', { concurrency: 50 })
    await until(async () => (await again.stats()).counts.done === 530, 'all to be done')
    const { counts, totals } = await again.stats()
    assert.deepEqual([counts.dead, counts.done], [JOBS - 500, 530])
    assert.equal(totals.dead, JOBS)
    const running = (await again.settings()).find(({ name }) => name === 'running')
    assert.deepEqual(running, { name: 'running', value: 100, by: 'operator', code: 1 })
    const [left] = await again.jobs('dead', { group: 'tenant-7', limit: 1 })
    assert.equal(left, undefined)
    assert.deepEqual(faults, [])
  })
})
