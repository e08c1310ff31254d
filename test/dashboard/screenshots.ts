/**
 * Pictures of the page with a day's work in it, for people and for the documentation: `node test/dashboard/screenshots.ts FOLDER`.
 */
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { alerts } from '../../src/alerts/index.ts'
import { dashboard } from '../../src/dashboard/index.ts'
import { Millpond } from '../../src/index.ts'
import { actionDone } from '../../src/pond/actions.ts'
import { toNode } from '../../src/web/node.ts'
import { launch } from './browser.ts'

/** Milliseconds until the lines have some length. */
const SHOWN = 40_000

/** As if this file were that of a service: where it lies on this machine is nobody's business. */
function inService(error: Error): Error {
  error.stack = (error.stack ?? '').replaceAll(/file:\S*\/screenshots\.ts/g, 'file:///srv/newsletter/emails.ts')
  return error
}

const folder = process.argv[2] ?? 'screenshots'
mkdirSync(folder, { recursive: true })
const pond = await Millpond.open('memory:')
pond.on('failed', () => {})
pond.on('dead', () => {})

const emails = pond.queue<{ to: string; template: string }>('emails', {
  capacity: 5000,
  retry: { attempts: 3, backoff: { type: 'fixed', base: 300 } },
})
emails.work(
  async ({ data }, ctx) => {
    ctx.log('rendering', { template: data.template })
    await sleep(20 + Math.random() * 60)
    if (data.template === 'retired') throw inService(new Error('no template retired'))
    if (Math.random() < 0.06) throw inService(new Error('connect ETIMEDOUT 10.0.4.7:25'))
    ctx.log('sent', { to: data.to })
    return { messageId: `<${Date.now()}@mail.example.org>` }
  },
  { concurrency: 4 },
)
const reports = pond.queue('reports/monthly', { limits: { running: 4, group: { running: 1 } } })
reports.work(() => sleep(900).then(() => ({ pages: 12 })), { concurrency: 6 })
const thumbnails = pond.queue('thumbnails')
thumbnails.work(() => sleep(15), { concurrency: 8 })
const invoices = pond.queue('invoices')
const digests = pond.queue('digests')

for (let n = 0; n < 160; n++) await reports.push({ customer: n, month: '2026-02' }, { group: `tenant-${n % 14}` })
const invoice = (n: number) => ({
  number: 20_260_000 + n,
  customer: { name: 'Ada Lovelace', email: 'ada@example.org' },
  lines: [{ sku: 'A-1', amount: 12.5 }],
  reference: 9007199254740993n,
})
for (let n = 0; n < 31; n++) await invoices.push(invoice(n), { key: `invoice-${n}`, group: `tenant-${n % 5}` })
for (let n = 0; n < 12; n++) await digests.push({ week: n })
await digests.pause()
await emails.override({ limits: { rate: '60/s' } })
for (let n = 0; n < 7; n++)
  await emails.push({ to: `user${n}@example.org`, template: 'retired' }, { group: `tenant-${n % 2}` })
await pond.schedule('heartbeat', 'every 5s', thumbnails, { image: 0 })
await pond.schedule('weekly-digest', '0 9 * * 1', digests, { week: 9 }, { tz: 'Europe/Berlin' })
alerts(pond, {
  rules: [
    { name: 'invoices pile up', queue: 'invoices', when: { depth: 20 }, for: '5s' },
    { name: 'dead mails', queue: 'emails', when: { dead: 5 }, for: 0 },
    { name: 'long waits', when: { waitP95: '5m' } },
  ],
  notify: () => {},
  every: '1s',
})
for (const [action, queue, count] of [
  ['pause', 'digests', 1],
  ['override', 'emails', 1],
  ['cancelAll', 'reports/monthly', 1204],
] as const) {
  await actionDone(pond, { who: 'ada', through: 'dashboard', action, queue, count })
}
const pushing = setInterval(() => {
  const wave = 12 + 10 * Math.sin(performance.now() / 6000)
  for (let n = 0; n < wave + Math.random() * 6; n++) {
    const data = { to: `user${n}@example.org`, template: 'welcome' }
    void emails.push(data, { group: `tenant-${n % 5}`, priority: n % 7 === 0 ? 7 : 4 }).catch(() => {})
  }
  for (let n = 0; n < 2 * wave; n++) void thumbnails.push({ image: n }).catch(() => {})
}, 400)

const server = createServer(toNode(dashboard(pond, { rights: 'local' })))
await once(server.listen(0, '127.0.0.1'), 'listening')
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
const browser = await launch()
const first = await (await browser.newContext()).newPage()
await first.goto(base)
await first.waitForTimeout(SHOWN)

const [dead] = await emails.jobs('dead', { limit: 1 })
const [waiting] = await invoices.jobs('waiting', { limit: 1 })
const PLACES = {
  overview: '#/',
  queue: '#/queue/main/emails?q=state%3Adone',
  charts: '#/queue/main/emails/charts',
  groups: '#/queue/main/reports%2Fmonthly/groups',
  settings: '#/queue/main/emails/settings',
  'job-waiting': `#/job/main/${waiting?.id}`,
  'job-dead': `#/job/main/${dead?.id}`,
  workers: '#/workers',
  schedules: '#/schedules',
  schedule: '#/schedule/main/heartbeat',
  alerts: '#/alerts',
  actions: '#/actions',
}
for (const colorScheme of ['light', 'dark'] as const) {
  for (const [device, width, height] of [
    ['desktop', 1280, 800],
    ['phone', 390, 844],
  ] as const) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' })
    const page = await context.newPage()
    for (const [name, hash] of Object.entries(PLACES)) {
      await page.goto(`${base}${hash}`)
      await page.reload()
      await page.waitForTimeout(2500)
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${device}.png`) })
    }
    await context.close()
  }
}
clearInterval(pushing)
await browser.close()
process.exit()
