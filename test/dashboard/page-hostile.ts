/** Hostile texts in everything that the page shows, and the ways of another site to it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { noBrowser, visit } from './browser.ts'
import { startDashboard } from './fixture.ts'

const EVIL = [
  `<img src=x onerror="alert('img')">`,
  `<script>alert('script')</script>`,
  `"><svg onload=alert('svg')>`,
  `javascript:alert('url')`,
  `\u202e{{constructor.constructor('alert(1)')()}}`,
].join(' ')

describe('hostile texts', { skip: noBrowser }, () => {
  test('payloads, keys, groups, errors, logs and workers are shown as texts, and run nothing', {
    timeout: 60_000,
  }, async (t) => {
    const pond = await Millpond.open('memory:')
    after(t, () => pond.close({ timeout: 100 }))
    pond.on('dead', () => {})
    const queue = pond.queue('a:b/c.d', { retry: { attempts: 1 }, limits: { group: { running: 1 } } })
    const group = EVIL.slice(0, 200)
    const { id } = await queue.push({ [EVIL]: EVIL, list: [EVIL], __proto__x: 1 }, { group, key: EVIL.slice(0, 250) })
    queue.work((_, ctx) => {
      ctx.log(EVIL, { [EVIL]: EVIL })
      throw Object.assign(new Error(EVIL), { name: EVIL.slice(0, 100) })
    })
    await until(async () => (await pond.job(id))?.state === 'dead', 'the job to be dead')
    await queue.push({ waits: EVIL }, { group, delay: '1h' })
    await queue.limitGroup(group, { running: 1 })
    const { base } = await startDashboard(t, pond)
    const { page, faults, requests } = await visit(t, base)
    const name = encodeURIComponent(queue.name)
    for (const [hash, text] of [
      ['#/', queue.name],
      [`#/queue/main/${name}?q=state:dead`, "alert('img')"],
      [`#/queue/main/${name}/groups`, "alert('img')"],
      [`#/queue/main/${name}/settings`, 'Capacity'],
      [`#/job/main/${id}`, "alert('script')"],
      ['#/workers', queue.name],
      [
        `#/queue/main/${name}?q=${encodeURIComponent(`state:dead error:"${EVIL.replaceAll('"', '')}"`)}`,
        'fits the search',
      ],
      [`#/queue/${encodeURIComponent(EVIL)}/${encodeURIComponent(EVIL)}`, 'There is no queue'],
      [`#/job/main/${encodeURIComponent(EVIL)}`, 'is a UUID'],
      ['#/queue/%E0%A4%A/%', 'There is no queue'],
    ] as const) {
      await page.goto(`${base}${hash}`)
      await page.locator('main').getByText(text).first().waitFor()
    }
    assert.equal(await page.locator('main img, main script, main iframe, main object').count(), 0)
    assert.deepEqual(faults, [])
    const elsewhere = requests.filter((url) => !url.startsWith(base))
    assert.deepEqual(elsewhere, [])
  })

  test('another site can neither frame it, nor send it anything, nor read it', { timeout: 60_000 }, async (t) => {
    const pond = await Millpond.open('memory:')
    after(t, () => pond.close({ timeout: 100 }))
    const { id } = await pond.queue('emails').push({ secret: 'canary' })
    const { base } = await startDashboard(t, pond)
    // Another port is another origin, of the same site.
    const evil = createServer((_, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<iframe src="${base}"></iframe><form method="post" enctype="text/plain" action="${base}api/cancel">
        <input name='{"id":"${id}","x":"' value='"}'></form>`)
    })
    await once(evil.listen(0, '127.0.0.1'), 'listening')
    after(t, () => evil.close())
    const { page } = await visit(t, `http://127.0.0.1:${(evil.address() as AddressInfo).port}/`)
    await page.waitForLoadState()
    const framed = page.frames().find((frame) => frame !== page.mainFrame())
    assert.equal(await framed?.evaluate("document.querySelector('#app') !== null").catch(() => false), false)
    const results = await page.evaluate(
      async ([target, job]) => {
        const tries = [
          { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id: job }) },
          { method: 'POST', mode: 'no-cors', body: JSON.stringify({ id: job }) },
          {
            method: 'POST',
            mode: 'no-cors',
            headers: { 'content-type': 'text/plain' },
            body: JSON.stringify({ id: job }),
          },
        ] as const
        const sent = await Promise.all(
          tries.map((init) =>
            fetch(`${target}api/cancel`, init).then(({ type, status }) => `${type} ${status}`, String),
          ),
        )
        const read = await fetch(`${target}events`).then(String, () => 'refused')
        return [...sent, read]
      },
      [base, id] as const,
    )
    assert.deepEqual([...new Set(results)], ['TypeError: Failed to fetch', 'refused'])
    await page.locator('form').evaluate((form) => (form as unknown as { submit(): void }).submit())
    await page.waitForLoadState()
    assert.equal((await pond.job(id))?.state, 'waiting')
  })
})
