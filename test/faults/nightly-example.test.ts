/** `examples/nightly.ts` as it is: of two processes one gets the night, both send its reports, each report once. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Millpond } from '../../src/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/nightly.ts', import.meta.url))
const SOURCES = new URL('../web/adapters-source.ts', import.meta.url).href
const CUSTOMERS = 6

test('examples/nightly.ts has one job a night, and sends each report once', async (t) => {
  const sent: { customer: number; day: string }[] = []
  const api = createServer(async (request, response) => {
    sent.push(JSON.parse(await text(request)))
    response.writeHead(200).end()
  })
  api.listen(0, '127.0.0.1')
  await once(api, 'listening')
  after(t, () => api.close())

  const STORE = `sqlite:${join(scratch(t), 'app.db')}`
  const API = `http://127.0.0.1:${(api.address() as AddressInfo).port}`
  const env = { ...process.env, API, STORE, CUSTOMERS: `${CUSTOMERS}` }
  const children = Array.from({ length: 2 }, (): ChildProcess => {
    const child = spawn(process.execPath, ['--import', SOURCES, EXAMPLE], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    after(t, () => child.kill('SIGKILL'))
    return child
  })
  const pond = await Millpond.open(STORE)
  after(t, () => pond.close())
  const nightly = async () => (await pond.schedules.list()).find(({ name }) => name === 'nightly')
  await until(async () => (await nightly())?.nextAt != null, 'the night is planned')
  const { when, tz, declared, nextAt } = (await nightly()) ?? assert.fail()
  assert.deepEqual([when, tz, declared], ['0 2 * * *', 'Europe/Paris', true])
  const hour = new Intl.DateTimeFormat('en', { timeZone: 'Europe/Paris', hour: 'numeric', hourCycle: 'h23' })
  assert.equal(hour.format(nextAt ?? undefined), '02')
  await pond.schedules.run('nightly')
  await until(() => sent.length >= CUSTOMERS, 'all reports are sent')
  // As if the night was tried again.
  await pond.schedules.run('nightly')
  const nights = pond.queue('nights')
  await until(async () => (await nights.jobs('done')).length === 2, 'both nights are done')
  const days = new Set((await nights.jobs('done')).map(({ pushedAt }) => pushedAt.toISOString().slice(0, 10)))
  const reports = days.size * CUSTOMERS
  assert.equal((await pond.queue('reports').stats()).totals.pushed, reports)
  await until(() => sent.length >= reports, 'no other report is sent')
  const ends = children.map((child) => once(child, 'exit'))
  for (const child of children) child.kill('SIGTERM')
  assert.deepEqual(await Promise.all(ends), [
    [0, null],
    [0, null],
  ])
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => n)
  assert.deepEqual(
    sent.map(({ customer, day }) => `${day}:${customer}`).sort(),
    [...days].flatMap((day) => customers.map((customer) => `${day}:${customer}`)).sort(),
  )
})
