/** What ends `millpond serve`, and when: a signal while it starts, a signal twice, a log that nobody reads. */
import assert from 'node:assert/strict'
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import { listening } from '../web/serving.ts'
import { environment, MAIN, startMillpond } from './fixture.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** A server that accepts connections and never answers. */
async function silent(t: TestContext) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    sockets.push(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connected: () => sockets.length > 0 }
}

function start(t: TestContext, [program, ...args]: [string, ...string[]], options: SpawnOptions = {}) {
  const child = spawn(program, args, { env: environment({}), stdio: ['ignore', 'ignore', 'pipe'], ...options })
  let told = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    told += chunk.toString()
  })
  t.after(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([code, signal]): unknown => code ?? signal)
  return { child, ended, told: () => told }
}

/** The only child of a process. */
function childOf({ pid }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim())
}

const OWN_PIDS: [string, ...string[]] = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc']

function withoutPids(): string | false {
  const [program, ...args] = OWN_PIDS
  return spawnSync(program, [...args, 'true']).status === 0 ? false : 'the system allows no namespace for processes'
}

describe('a signal while the store is opened ends it with 0', { timeout: 120_000 }, () => {
  for (const scheme of ['redis', 'postgres']) {
    test(`${scheme}, which does not answer`, async (t) => {
      const store = await silent(t)
      const url = `${scheme}://127.0.0.1:${store.port}`
      const { child, ended, told } = start(t, [process.execPath, MAIN, 'serve', '--store', url, '--port', '0'])
      await until(store.connected)
      child.kill('SIGTERM')
      assert.equal(await ended, 0)
      assert.match(told(), /stopping: SIGTERM\n$/)
    })
  }

  test('as process 1, where a signal without a listener is ignored', { skip: withoutPids() }, async (t) => {
    const store = await silent(t)
    const url = `redis://127.0.0.1:${store.port}`
    const program = [process.execPath, MAIN, 'serve', '--store', url, '--port', '0']
    const { child, ended } = start(t, [...OWN_PIDS, ...program])
    await until(store.connected)
    process.kill(childOf(child), 'SIGTERM')
    assert.equal(await ended, 0)
  })
})

test('two signals within a second are one: what is under way ends, and the exit code is 0', {
  timeout: 60_000,
}, async (t) => {
  const asked = Promise.withResolvers<() => void>()
  const receiver = createHttpServer((_, answer) => asked.resolve(() => void answer.end()))
  const hook = await listening(receiver)
  t.after(() => {
    receiver.closeAllConnections()
    receiver.close()
  })
  const args = ['serve', '--store', 'memory:', '--port', '0', '--deliver', `q=${hook}`]
  const running = await startMillpond(args, { MILLPOND_WEBHOOK_SECRET: SECRET })
  const json = { 'content-type': 'application/json' }
  await fetch(`${running.origin}/v1/queues/q/jobs`, { method: 'POST', headers: json, body: '{"data":1}' })
  const answer = await asked.promise
  const { pid } = running
  assert.ok(pid)
  const ended = running.end('SIGTERM')
  process.kill(pid, 'SIGINT')
  await until(() => running.lines.some((line) => line.includes('stopping')))
  process.kill(pid, 'SIGTERM')
  answer()
  assert.equal(await ended, 0)
  assert.match(running.lines.join('\n'), /stopped$/)
})

test('a log that nobody reads any more ends it as a signal does', { timeout: 60_000 }, async (t) => {
  const program: [string, ...string[]] = [
    process.execPath,
    MAIN,
    'serve',
    '--store',
    'memory:',
    '--port',
    '0',
    '--log-requests',
  ]
  const { child, ended, told } = start(t, program)
  await until(() => told().includes('listening'))
  const [origin = ''] = /http:[\d./:]+/.exec(told()) ?? []
  const claim = { method: 'POST', headers: { prefer: 'wait=50' } }
  const waiting = fetch(`${origin}/v1/queues/q/claims`, claim)
  child.stderr?.destroy()
  // The next lines of the log cannot be written.
  await fetch(`${origin}/healthz`)
  assert.deepEqual(await (await waiting).json(), { jobs: [] })
  assert.equal(await ended, 0)
})

test('help that nobody reads ends with 0', { timeout: 60_000 }, async (t) => {
  const { child, ended } = start(t, [process.execPath, MAIN, '--help'], { stdio: ['ignore', 'pipe', 'inherit'] })
  child.stdout?.destroy()
  assert.equal(await ended, 0)
})
