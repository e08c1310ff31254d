/**
 * 10,000 clients that hang up midway, on `millpond serve` as a process: in the headers, in the body, while they wait for a result or for a
 * job, and in an event stream. More than there may be connections, and of each kind that waits more than there are places.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { startMillpond } from '../cli/fixture.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'

const EACH = 80
const ROUNDS = depth(5, 25)

interface Hanging {
  /** What it has heard so far. */
  heard: string
  socket: Socket
}

/** Sends it and listens, until it hangs up. */
function hang(origin: string, sent: string): Hanging {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname, () => socket.write(sent))
  const hanging = { heard: '', socket }
  socket.on('data', (chunk: Buffer) => {
    hanging.heard += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  return hanging
}

const head = (line: string, ...headers: string[]) => [`${line} HTTP/1.1`, 'Host: localhost', ...headers].join('\r\n')
const post = (path: string, ...headers: string[]) => head(`POST ${path}`, 'Content-Type: application/json', ...headers)
const DATA = '{"data":1}'

test('10,000 clients hang up midway: nothing is stored by halves, lost or held, and the service goes on', {
  timeout: 300_000,
}, async () => {
  const running = await startMillpond(['serve', '--store', 'memory:', '--port', '0'])
  const { origin } = running
  const send = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const type = { 'content-type': 'application/json', connection: 'close' }
    const init = body === undefined ? {} : { body }
    const response = await fetch(`${origin}${path}`, { method, headers: { ...type, ...headers }, ...init })
    return { status: response.status, headers: response.headers, told: JSON.parse(await response.text()) }
  }
  const waiting = async (queue: string): Promise<number> => {
    return (await send('GET', `/v1/queues/${queue}`)).told.counts?.waiting ?? 0
  }
  const residentMiB = () =>
    Number(execFileSync('ps', ['-o', 'rss=', '-p', `${running.pid}`], { encoding: 'utf8' })) / 1024
  try {
    const followed = (await send('POST', '/v1/queues/followed/jobs', {}, DATA)).told.id
    const kinds = {
      headers: `${post('/v1/queues/half/jobs')}\r\nX-More: `,
      body: `${post('/v1/queues/half/jobs', 'Content-Length: 10', 'Expect: 100-continue')}\r\n\r\n{"data":`,
      result: `${post('/v1/queues/whole/jobs', 'Prefer: wait=50', 'Content-Length: 10')}\r\n\r\n${DATA}`,
      claim: `${head('POST /v1/queues/claims/claims', 'Prefer: wait=50', 'Content-Length: 0')}\r\n\r\n`,
      events: `${head(`GET /v1/jobs/${followed}`, 'Accept: text/event-stream')}\r\n\r\n`,
    }
    let before = 0
    for (let round = 1; round <= ROUNDS; round++) {
      const clients = Object.entries(kinds).map(([kind, sent]) => ({
        kind,
        all: Array.from({ length: EACH }, () => hang(origin, sent)),
      }))
      // Each is midway: what can be heard of a request has been, and who waits for a result has pushed.
      const heard = (kind: string, text: string) =>
        clients.every((one) => one.kind !== kind || one.all.every((client) => client.heard.includes(text)))
      await until(() => heard('body', '100 Continue') && heard('events', 'event: state'))
      await until(async () => (await waiting('whole')) === round * EACH)
      for (const { socket } of clients.flatMap(({ all }) => all)) {
        if (round % 2 === 0) socket.destroy()
        else socket.resetAndDestroy()
      }
      if (round === 5) before = residentMiB()
    }
    assert.equal(await waiting('half'), 0)
    assert.equal(await waiting('whole'), ROUNDS * EACH)
    const grown = residentMiB() - before
    assert.ok(grown < 150, `${grown} MiB more`)
    // No place is held: what may wait waits.
    const pushed = await send('POST', '/v1/queues/whole/jobs', { prefer: 'wait=1' }, DATA)
    assert.deepEqual([pushed.status, pushed.headers.get('preference-applied')], [202, 'wait=1'])
    const claiming = send('POST', '/v1/queues/claims/claims', { prefer: 'wait=50' }, '{}')
    const { id } = (await send('POST', '/v1/queues/claims/jobs', {}, DATA)).told
    const claimed = await claiming
    assert.deepEqual([claimed.told.jobs.length, claimed.told.jobs[0].id, claimed.told.jobs[0].attempt], [1, id, 1])
    assert.equal(running.lines.length, 1, running.lines.join('\n'))
  } finally {
    assert.equal(await running.end(), 0)
  }
})
