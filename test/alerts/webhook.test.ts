/** Alerts of the service: by a signed webhook, and by a command, as `millpond serve --alerts` has them. */
import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Alert, alerts } from '../../src/alerts/index.ts'
import { alertOptions, run } from '../../src/cli/serve/alerts.ts'
import { UsageError } from '../../src/cli/usage-error.ts'
import { Millpond } from '../../src/index.ts'
import { serve } from '../../src/serve/index.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { listening } from '../web/serving.ts'

const RULES = [{ name: 'deep', when: { depth: 1 }, for: 0 }]
const ALERT: Alert = {
  ...{ rule: 'deep', queue: 'mail', state: 'firing', metric: 'depth', value: 3, above: 1 },
  since: '2026-01-01T00:00:00.000Z',
}

test('a webhook gets each alert, signed', { timeout: 60_000 }, async (t) => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const bodies: Record<string, unknown>[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const { 'webhook-id': id, 'webhook-timestamp': seconds, 'webhook-signature': signature } = request.headers
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const expected = createHmac('sha256', key).update(`${id}.${seconds}.${text}`).digest('base64')
    assert.equal(signature, `v1,${expected}`)
    bodies.push(JSON.parse(text))
    response.writeHead(204).end()
  })
  const url = await listening(server)
  after(t, () => server.close())
  const service = await serve('memory:', { alerts: { rules: RULES, notify: { url, secret }, every: 100 } })
  after(t, () => service.close({ timeout: 100 }))
  for (const data of [1, 2]) {
    const request = new Request('http://localhost/v1/queues/mail/jobs', {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ data }),
    })
    assert.equal((await service.handle(request)).status, 202)
  }
  await until(() => bodies.length === 1)
  const { type, data } = bodies[0] ?? {}
  assert.equal(type, 'millpond/alerts')
  const { since, ...alert } = data as Alert
  assert.deepEqual(alert, { rule: 'deep', queue: 'mail', state: 'firing', metric: 'depth', value: 2, above: 1 })
  assert.ok(Math.abs(Date.now() - Date.parse(since)) < 60_000)
})

test('a command gets the alert at its input, and is tried again if it fails', async (t) => {
  const file = join(scratch(t), 'out.json')
  const { signal } = new AbortController()
  await run(['sh', '-c', `cat > ${file}`], ALERT, signal)
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), ALERT)
  await assert.rejects(run(['sh', '-c', 'exit 3'], ALERT, signal), /ended with 3/)
  await assert.rejects(run(['/nowhere/at-all'], ALERT, signal), { code: 'ENOENT' })
  await assert.rejects(run(['sleep', '60'], ALERT, AbortSignal.timeout(20)))
})

test('the file of the command line', () => {
  const webhook = (url: unknown) => ({ url: String(url), secret: 'whsec_x' })
  const read = (value: unknown) => alertOptions('a.json', JSON.stringify(value), webhook)
  assert.deepEqual(read({ rules: RULES, notify: { url: 'https://example.org' }, every: '5s' }), {
    ...{ rules: RULES, every: '5s' },
    notify: { url: 'https://example.org', secret: 'whsec_x' },
  })
  assert.equal(typeof read({ rules: RULES, notify: { command: ['true'] } }).notify, 'function')
  const wrong: [unknown, RegExp][] = [
    [[], /--alerts: a\.json is not JSON such as/],
    [{ rules: RULES }, /is not JSON such as/],
    [{ rules: RULES, notify: { command: 'rm' } }, /is not JSON such as/],
    [{ rules: RULES, notify: { command: ['true'] }, more: 1 }, /is not JSON such as/],
    [{ rules: [{ name: 'a', when: { deep: 1 } }], notify: { command: ['true'] } }, /--alerts: .*unknown option "deep"/],
  ]
  for (const [value, message] of wrong) {
    assert.throws(
      () => read(value),
      (error) => error instanceof UsageError && message.test(error.message),
    )
  }
})

test('the state of alerts may be anything: it is read with care', { timeout: 60_000 }, async () => {
  await using pond = await Millpond.open('memory:')
  const right = pond.queue('millpond/alerts/watch')
  const worker = right.work((_, ctx) => {
    ctx.progress({ rules: 7, states: [['mail deep', { phase: 'odd' }], 7, null] })
    return ctx.retry('1h')
  })
  const { id } = await right.push(null, { key: 'watch', attempts: 10 })
  await until(async () => (await pond.job(id))?.state === 'scheduled')
  await worker.close()
  await right.update(id, { delay: 0 })
  const told: Alert[] = []
  await pond.queue('mail').pushMany([1, 2])
  await using _ = alerts(pond, { rules: RULES, notify: (alert) => void told.push(alert), every: 100 })
  await until(() => told.length === 1)
  assert.equal(told[0]?.state, 'firing')
})
