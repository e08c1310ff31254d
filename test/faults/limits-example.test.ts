/** `examples/reports.ts` as it is: three processes send all reports to an API, which once has had enough. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'

const EXAMPLE = fileURLToPath(new URL('../../examples/reports.ts', import.meta.url))
const SOURCES = new URL('../web/adapters-source.ts', import.meta.url).href
const REPORTS = 8

test('examples/reports.ts sends each report once, one that was answered 429 again, and ends with a signal', async (t) => {
  const answers: { customer: number; status: number }[] = []
  const api = createServer(async (request, response) => {
    const { customer } = JSON.parse(await text(request))
    const status = answers.length === 2 ? 429 : 200
    answers.push({ customer, status })
    response.writeHead(status, status === 429 ? { 'retry-after': '1' } : {}).end()
  })
  api.listen(0, '127.0.0.1')
  await once(api, 'listening')
  after(t, () => api.close())

  const API = `http://127.0.0.1:${(api.address() as AddressInfo).port}`
  const env = { ...process.env, API, STORE: `sqlite:${join(scratch(t), 'app.db')}` }
  const children = Array.from({ length: 3 }, (_, n): ChildProcess => {
    const args = ['--import', SOURCES, EXAMPLE, ...(n === 0 ? [`${REPORTS}`] : [])]
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'inherit'] })
    after(t, () => child.kill('SIGKILL'))
    return child
  })
  const sent = () => answers.filter(({ status }) => status === 200).map(({ customer }) => customer)
  await until(() => sent().length >= REPORTS, 'all reports are sent')
  const ends = children.map((child) => once(child, 'exit'))
  for (const child of children) child.kill('SIGTERM')
  assert.deepEqual(
    await Promise.all(ends),
    [0, 1, 2].map(() => [0, null]),
  )
  assert.deepEqual(
    sent().sort((a, b) => a - b),
    Array.from({ length: REPORTS }, (_, n) => n),
  )
  const [refused] = answers.filter(({ status }) => status === 429)
  assert.ok(refused !== undefined && sent().includes(refused.customer))
})
