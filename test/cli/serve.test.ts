/** `millpond serve` as a process: it serves, stops when told, loses nothing, and delivers. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { Millpond } from '../../src/index.ts'
import { inFolder } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { listening } from '../web/serving.ts'
import { startMillpond } from './fixture.ts'

const TOKEN = 'a-token-of-sixteen'
const JSON_TYPE = { 'content-type': 'application/json' }

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal}: what waits is answered, the store is let go of, the exit code is 0`, {
    timeout: 60_000,
  }, async () => {
    await inFolder(async (folder) => {
      const store = `sqlite:${join(folder, 'jobs.db')}`
      const first = await startMillpond(['serve', '--store', store, '--port', '0'])
      const waiting = fetch(`${first.origin}/v1/queues/q/claims`, { method: 'POST', headers: { prefer: 'wait=50' } })
      const pushed = await fetch(`${first.origin}/v1/queues/r/jobs`, {
        method: 'POST',
        headers: JSON_TYPE,
        body: '{"data":{"x":1}}',
      })
      assert.equal(pushed.status, 202)
      const claimed = await fetch(`${first.origin}/v1/queues/r/claims`, { method: 'POST', headers: JSON_TYPE })
      const { jobs } = JSON.parse(await claimed.text())
      assert.equal(await first.end(signal), 0)
      assert.deepEqual(await (await waiting).json(), { jobs: [] })
      assert.match(first.lines.join('\n'), new RegExp(`listening on .*stopping: ${signal}.* stopped$`, 's'))

      // The claim outlives the process that gave it out.
      const second = await startMillpond(['serve', '--store', store, '--port', '0'])
      const body = JSON.stringify({ fence: jobs[0].fence, result: 'done by one who never noticed' })
      const path = `/v1/queues/r/jobs/${jobs[0].id}/complete`
      assert.equal((await fetch(`${second.origin}${path}`, { method: 'POST', headers: JSON_TYPE, body })).status, 200)
      assert.equal(await second.end(signal), 0)
      const pond = await Millpond.open(store)
      assert.equal((await pond.job(jobs[0].id))?.result, 'done by one who never noticed')
      await pond.close()
    })
  })
}

test('a token from the environment is asked for on loopback, too, and shows up nowhere', {
  timeout: 60_000,
}, async () => {
  const running = await startMillpond(['serve', '--store', 'memory:', '--port', '0', '--log-requests', '--json'], {
    MILLPOND_TOKEN: TOKEN,
  })
  assert.equal((await fetch(`${running.origin}/v1/queues?x=1`)).status, 401)
  const headers = { authorization: `Bearer ${TOKEN}` }
  assert.equal((await fetch(`${running.origin}/v1/queues`, { headers })).status, 200)
  await until(() => running.lines.length >= 3)
  assert.equal(await running.end(), 0)
  const told = running.lines.map((line) => JSON.parse(line))
  for (const { time, level, message } of told) {
    assert.ok(!Number.isNaN(Date.parse(time)) && (level === 'info' || level === 'error') && message !== '')
  }
  const messages = told.map(({ message }) => message)
  assert.ok(messages.includes('GET /v1/queues 401') && messages.includes('GET /v1/queues 200'))
  assert.doesNotMatch(running.lines.join('\n'), new RegExp(TOKEN))
})

test('a 401 is logged with its address, not with its token, and another of it not at once', {
  timeout: 60_000,
}, async () => {
  const running = await startMillpond(['serve', '--store', 'memory:', '--port', '0', '--json'], {
    MILLPOND_TOKEN: TOKEN,
  })
  const headers = { authorization: 'Bearer wrong-but-long-enough' }
  for (let times = 0; times < 3; times++) {
    assert.equal((await fetch(`${running.origin}/v1/queues`, { headers })).status, 401)
  }
  await until(() => running.lines.length >= 2)
  assert.equal(await running.end(), 0)
  const told = running.lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'error')
  assert.deepEqual(
    told.map(({ address, times }) => [address, times]),
    [['127.0.0.1', 1]],
  )
  assert.doesNotMatch(running.lines.join('\n'), /wrong-but|sixteen/)
})

test('a queue is delivered to a webhook; failures are one line each, without what the URL asks', {
  timeout: 60_000,
}, async () => {
  let count = 0
  const server = createServer((request, response) => {
    request.resume()
    count++
    response.writeHead(count === 1 ? 503 : 200, { 'retry-after': '0' }).end()
  })
  const origin = await listening(server)
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const args = ['serve', '--store', 'memory:', '--port', '0', '--deliver', `q=${origin}/in?key=hidden`]
  const running = await startMillpond(args, { MILLPOND_WEBHOOK_SECRET: secret })
  try {
    const pushed = await fetch(`${running.origin}/v1/queues/q/jobs`, {
      method: 'POST',
      headers: { ...JSON_TYPE, prefer: 'wait=30' },
      body: '{"data":1}',
    })
    const { state, attempt } = JSON.parse(await pushed.text())
    assert.deepEqual([state, attempt], ['done', 2])
    await until(() =>
      running.lines.some((line) => /error: the webhook answered 503 queue=q job=\S+ attempt=1$/.test(line)),
    )
    assert.doesNotMatch(running.lines.join('\n'), /hidden|whsec_/)
  } finally {
    assert.equal(await running.end(), 0)
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
})
