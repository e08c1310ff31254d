/** A job among those that it waits for and those that wait for it. */
import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after as undo } from '../support/cleaning.ts'
import { axe } from './axe.ts'
import { closeBrowser, noBrowser, visit } from './browser.ts'
import { ALL, startDashboard } from './fixture.ts'

after(closeBrowser)

async function graphOf(t: TestContext, parents: number) {
  const pond = await Millpond.open('memory:')
  undo(t, () => pond.close({ timeout: 100 }))
  const [parts, secret, whole] = [pond.queue('parts'), pond.queue('secret'), pond.queue('whole')]
  const ids = (await parts.pushMany([...Array(parents).keys()])).map(({ id }) => id)
  const { id: hidden } = await secret.push(1)
  const { id } = await whole.push('all', { after: [...ids, hidden] })
  const { id: child } = await whole.push('then', { after: [id] })
  return { pond, id, child, ids, hidden }
}

test('a job has its relatives, but nothing of queues that the caller may not see', async (t) => {
  const { pond, id, child, ids, hidden } = await graphOf(t, 2)
  let viewer: string[] = ['*']
  const { ask } = await startDashboard(t, pond, { rights: () => ({ ...ALL, operator: [], payloads: [], viewer }) })
  const part = (one: string) => ({ id: one, queue: 'parts', state: 'waiting' })
  const shown = async (of: string) => (await ask('job', { id: of })).body
  const all = await shown(id)
  assert.deepEqual(all.relatives.parents.shown, [...ids.map(part), { id: hidden, queue: 'secret', state: 'waiting' }])
  assert.deepEqual(all.relatives.children, { shown: [{ id: child, queue: 'whole', state: 'blocked' }], count: 1 })
  assert.match(all.why, /3 jobs have not ended: .*\(secret, waiting\)/)
  viewer = ['whole', 'parts']
  const some = await shown(id)
  assert.deepEqual(some.relatives.parents, { shown: ids.map(part), count: 3 })
  assert.equal(some.why, `Job ${id} waits for other jobs, of which you may not see all.`)
  assert.equal((await shown(ids[0] ?? '')).relatives.children.count, 1)
  const { id: alone } = await pond.queue('whole').push('alone')
  assert.equal((await shown(alone)).relatives, null)
})

describe('the graph on the page', { skip: noBrowser }, () => {
  for (const [dark, width] of [
    [false, 1280],
    [true, 390],
  ] as const) {
    test(`links with names, for everybody: ${width} wide`, { timeout: 120_000 }, async (t) => {
      const { pond, id, ids } = await graphOf(t, 25)
      const { base } = await startDashboard(t, pond)
      const { page, faults } = await visit(t, base, { dark, width })
      await page.goto(`${base}#/job/main/${id}`)
      const parents = page.getByRole('list', { name: 'Parents' })
      await parents.getByText('and 6 more').waitFor()
      assert.equal(await parents.getByRole('link').count(), 20)
      assert.equal(await page.locator('.relatives path').count(), 22)
      assert.deepEqual(await axe(page), [])
      const wide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      assert.ok(Number(await page.evaluate(wide)) <= 0)
      await page.getByRole('button', { name: 'Cancel' }).waitFor()
      await parents.getByRole('link').first().focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: ids[0] ?? '' }).waitFor()
      await page.getByRole('list', { name: 'Children' }).getByRole('link').first().click()
      await page.getByRole('heading', { name: id }).waitFor()
      await page.goto(`${base}#/queue/main/whole?q=state:blocked`)
      await page.locator('table.jobs a').nth(1).waitFor()
      assert.deepEqual(await axe(page), [])
      assert.deepEqual(faults, [])
    })
  }
})
