/** The page in a real browser, on every store: each action is clicked, and the store then has it. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { JobState, Millpond } from '../../src/index.ts'
import { Millpond as Pond } from '../../src/index.ts'
import { STORES } from '../api/suite.ts'
import { after, scratch } from '../support/cleaning.ts'
import { isDeep } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

const TENANTS = 3

/** A queue with jobs in most states. */
async function filled(pond: Millpond) {
  pond.on('dead', () => {})
  const queue = pond.queue('orders', { retry: { attempts: 1 } })
  const dying = []
  for (let n = 0; n < 9; n++) dying.push((await queue.push({ n, fails: true }, { group: `tenant-${n % TENANTS}` })).id)
  const { id: done } = await queue.push({ n: 100, fails: false }, { key: 'order-100' })
  const worker = queue.work((job, ctx) => {
    ctx.log('began', { n: 1 })
    if ((job.data as { fails: boolean }).fails) throw new Error('connection reset by peer')
    return { receipt: 7 }
  })
  await until(async () => {
    const { counts } = await queue.stats()
    return counts.dead === 9 && counts.done === 1
  }, 'nine dead jobs and a done one')
  await worker.close()
  const waiting = []
  for (let n = 0; n < 6; n++)
    waiting.push((await queue.push({ n, note: 'first' }, { group: `tenant-${n % TENANTS}` })).id)
  const { id: later } = await queue.push({ n: 200 }, { delay: '3h' })
  return { queue, dying, done, waiting, later }
}

const isState = async (pond: Millpond, id: string | undefined, state: JobState | undefined) =>
  until(async () => (await pond.job(id ?? ''))?.state === state, `job ${id} to be ${state}`)

async function openAt(t: TestContext, place: { url: string }) {
  const pond = await Pond.open(place.url)
  after(t, () => pond.close({ timeout: 100 }))
  const filling = await filled(pond)
  const { base } = await startDashboard(t, pond)
  const visited = await visit(t, base)
  after(t, () => assert.deepEqual(visited.faults, []))
  return { pond, base, ...filling, ...visited }
}

const link = (page: Page, name: string | RegExp) => page.getByRole('link', { name, exact: typeof name === 'string' })
const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' })

// The page asks the dashboard, which asks a pond: one kind of store is enough, and in a deep run another.
for (const store of STORES.filter(({ name }) => name === (isDeep ? 'postgres' : 'sqlite'))) {
  const skip = noBrowser || (store.skip ?? false)
  describe(`the page: ${store.name}`, { skip }, () => {
    const inPlace = (title: string, check: (t: TestContext, place: { url: string }) => Promise<void>) =>
      test(title, { timeout: 60_000 }, async (t) => {
        const { url, remove } = store.place(scratch(t))
        if (remove !== undefined) after(t, remove)
        await check(t, { url })
      })

    inPlace('from the overview to a job and back; nothing is in a URL that a server sees', async (t, place) => {
      const { page, dying, requests, base } = await openAt(t, place)
      await link(page, /orders 9 dead jobs/).click()
      await page
        .getByRole('row', { name: /connection reset by peer/ })
        .first()
        .waitFor()
      assert.equal(await page.locator('table.jobs tbody tr').count(), 9)
      await page.getByRole('combobox', { name: 'Search jobs' }).fill('state:dead group:tenant-1 error:"reset by"')
      await page.keyboard.press('Enter')
      await until(async () => (await page.locator('table.jobs tbody tr').count()) === 3, 'three jobs of the tenant')
      // The search can be shared.
      await page.reload()
      await until(async () => (await page.locator('table.jobs tbody tr').count()) === 3, 'the same after a reload')
      await page.locator('table.jobs tbody a').first().click()
      await page.getByRole('heading', { name: 'Last error' }).waitFor()
      await page.getByText('"fails"').waitFor()
      await page.getByText('began').waitFor()
      await page.goto(`${base}#/job/main/${dying[1]}`)
      await link(page, 'orders').click()
      await link(page, 'Workers').click()
      await page.getByRole('heading', { name: 'Workers' }).waitFor()
      await link(page, 'Overview').click()
      await page.getByRole('row', { name: /orders/ }).waitFor()
      const paths = new Set(requests.map((url) => url.replace(base, '')))
      for (const path of paths)
        assert.match(path, /^(?:page\.js|page\.css|icon\.svg|events|api\/(?:queue|jobs|count|job|workers))?$/)
    })

    inPlace('retry, cancel, remove, run now and edit one job', async (t, place) => {
      const { page, pond, base, dying, waiting, later } = await openAt(t, place)
      const show = async (id: string | undefined) => {
        await page.goto(`${base}#/job/main/${id}`)
        await page.getByRole('heading', { name: id ?? '' }).waitFor()
      }
      await show(dying[0])
      await button(page, 'Retry').click()
      await isState(pond, dying[0], 'waiting')
      await show(waiting[0])
      await page.locator('.why').waitFor()
      await button(page, 'Cancel').click()
      await button(page, 'Cancel it').click()
      await isState(pond, waiting[0], 'cancelled')
      await show(waiting[1])
      await button(page, 'Remove').click()
      await button(page, 'Remove it').click()
      await isState(pond, waiting[1], undefined)
      await page.getByText(/There is no job/).waitFor()
      await show(later)
      await button(page, 'Run now').click()
      await isState(pond, later, 'waiting')
      await show(waiting[2])
      await button(page, 'Edit …').click()
      await page.getByLabel('Data, as JSON').fill('{ "n": 9007199254740993 }')
      await page.getByLabel('Priority, 0 to 9').fill('8')
      await button(page, 'Save').click()
      await page.getByText('too large for a JSON number').waitFor()
      await page.getByLabel('Data, as JSON').fill('{ "n": 3, "note": "second" }')
      await button(page, 'Save').click()
      await until(async () => (await pond.job(waiting[2] ?? ''))?.priority === 8, 'the priority to be 8')
      assert.deepEqual((await pond.job(waiting[2] ?? ''))?.data, { n: 3, note: 'second' })
    })

    inPlace('bulk: a preview, then exactly what the search finds', async (t, place) => {
      const { page, pond, base, queue, dying } = await openAt(t, place)
      const run = async (search: string, action: string, count: number, confirm: RegExp) => {
        await page.goto(`${base}#/queue/main/orders?q=${encodeURIComponent(search)}`)
        await button(page, `${action} …`).click()
        await page
          .locator('dialog .huge')
          .getByText(new RegExp(`^${count} job`))
          .waitFor()
        await page.locator('dialog footer').getByRole('button', { name: confirm }).click()
        await page.getByText(new RegExp(`Done: ${count} `)).waitFor()
        await button(page, 'Close').last().click()
      }
      await run('state:dead group:tenant-1', 'Retry all', 3, /^Retry 3/)
      for (const [n, id] of dying.entries()) await isState(pond, id, n % TENANTS === 1 ? 'waiting' : 'dead')
      await run('state:dead group:tenant-0', 'Remove all', 3, /^Remove 3/)
      await run('state:waiting group:tenant-2', 'Cancel all', 2, /^Cancel 2/)
      await run('state:scheduled', 'Run all now', 1, /^Run 1/)
      const { counts } = await queue.stats()
      assert.deepEqual([counts.dead, counts.cancelled, counts.scheduled, counts.waiting], [3, 2, 0, 8])
    })

    inPlace('pause and resume, settings as an operator, limits of a group', async (t, place) => {
      const { page, base, queue } = await openAt(t, place)
      await page.goto(`${base}#/queue/main/orders/settings`)
      await button(page, 'Pause').click()
      await until(async () => (await queue.stats()).paused, 'the queue to be paused')
      await button(page, 'Resume').click()
      await until(async () => !(await queue.stats()).paused, 'the queue to go on')
      const set = async (label: string, value: string) => {
        await button(page, 'Save').waitFor({ state: 'detached' }) // the form before this one is gone
        await button(page, `Edit ${label}`).click()
        await page.getByRole('textbox', { name: label, exact: true }).fill(value)
        await button(page, 'Save').click()
      }
      const setting = async (name: string) => (await queue.settings()).find((one) => one.name === name)
      const values: [label: string, typed: string, name: string, value: unknown][] = [
        ['Running at once', '50', 'running', 50],
        ['Rate of starts', '200/s burst 20', 'rate', { count: 200, per: 1000, burst: 20 }],
        ['Running at once, each group', '4', 'groupRunning', 4],
        ['Rate of starts, each group', '5/10s', 'groupRate', { count: 5, per: 10_000, burst: null }],
        ['Capacity', '9,000', 'capacity', 9000],
        ['Attempts', '4', 'attempts', 4],
        [
          'Delay between attempts',
          '2s × 3, at most 10m, jitter 0.1',
          'backoff',
          { base: 2000, factor: 3, max: 600_000, jitter: 0.1 },
        ],
        ['Lease', '45s', 'lease', 45_000],
        ['Time limit', '2m', 'timeout', 120_000],
        ['Keep done jobs', '30m', 'keepDone', 1_800_000],
        ['Keep dead jobs', '0', 'keepDead', 0],
      ]
      for (const [label, typed, name, value] of values) {
        await set(label, typed)
        await until(async () => (await setting(name))?.by === 'operator', `${name} to be an operator's`)
        assert.deepEqual((await setting(name))?.value, value, name)
      }
      await button(page, 'Give Attempts back').click()
      await until(async () => (await setting('attempts'))?.by === 'code', 'the attempts to be those of code')
      await set('Lease', 'soon')
      await page.getByText(/lease must be/).waitFor()
      await button(page, 'Cancel').click()
      await link(page, 'groups').click()
      await button(page, 'Limits of tenant-1').click()
      await page.getByLabel('Running at once').fill('2')
      await page.getByLabel('Weight').fill('3')
      await button(page, 'Save').click()
      const groups = async () => (await queue.groups()).find(({ group }) => group === 'tenant-1')?.limits
      await until(async () => (await groups())?.running === 2, 'the group to have its limit')
      assert.deepEqual(await groups(), { running: 2, rate: null, weight: 3 })
      await button(page, 'Limits of tenant-1').click()
      await button(page, 'Take away').click()
      await until(async () => (await groups()) === null, 'the group to have no limits of its own')
    })
  })
}
