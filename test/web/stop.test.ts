/** SIGTERM and SIGINT to servers of each kind: what is under way gets its answer, with the pond still there for it; then the process ends with 0. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const preload = new URL('adapters-source.ts', import.meta.url).href

/** What each makes of `slow`, from Request to Response, and of `followJob`. */
const SERVERS: Readonly<Record<string, string>> = {
  'node:http': `
    const { createServer } = await import('node:http')
    const server = createServer(toNode((request) => request.url.endsWith('/slow') ? slow() : followJob(request)))
    server.listen(0, '127.0.0.1', () => listening(server.address().port))`,
  express: `
    const { default: express } = await import('express')
    const app = express()
    app.get('/slow', async (_, response) => response.send(await (await slow()).text()))
    app.all('/jobs/:id', toNode(followJob))
    const server = app.listen(0, '127.0.0.1', () => listening(server.address().port))`,
  fastify: `
    const { default: fastify } = await import('fastify')
    const { toFastify } = await import('millpond/web/fastify')
    const app = fastify()
    app.get('/slow', slow)
    app.register(toFastify(followJob), { prefix: '/jobs' })
    const server = app.server
    await app.listen({ port: 0, host: '127.0.0.1' })
    listening(server.address().port)`,
  hono: `
    const { serve } = await import('@hono/node-server')
    const { Hono } = await import('hono')
    const app = new Hono().get('/slow', slow).all('/jobs/:id', (c) => followJob(c.req.raw))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => listening(port))`,
}

const program = (server: string) => `
  const { Millpond } = await import('millpond')
  const { follow } = await import('millpond/web')
  const { closeServer, toNode } = await import('millpond/web/node')
  const pond = await Millpond.open('memory:', { signals: { before: () => closeServer(server) } })
  const queue = pond.queue('q')
  queue.work(({ data }) => 'did ' + data)
  const later = await queue.push(1, { delay: '1h' })
  const follower = follow(pond)
  const followJob = (request) => {
    console.log(request.headers.get('prefer') ?? 'stream')
    return follower(request)
  }
  const slow = async () => {
    console.log('in route')
    await new Promise((resolve) => pond.stopping.addEventListener('abort', resolve))
    // Longer than a tick: the server must wait for it.
    await new Promise((resolve) => setTimeout(resolve, 100))
    const { id } = await queue.push('it')
    return new Response(await pond.result(id))
  }
  const listening = (port) => console.log('http://127.0.0.1:' + port + ' ' + later.id)
  ${server}
`

/** A process of the program, and what it has printed so far. */
function run(code: string): { child: ChildProcess; text: () => string } {
  const child = spawn(process.execPath, ['--import', preload, '--input-type=module', '--eval', code], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8')
  })
  return { child, text: () => text }
}

for (const [name, server] of Object.entries(SERVERS)) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${name} and ${signal}`, { timeout: 60_000 }, async () => {
      const { child, text } = run(program(server))
      try {
        await until(() => /http:\S+ \S+\n/.test(text()), 'it to listen')
        const [, origin, id] = /(http:\S+) (\S+)\n/.exec(text()) ?? []
        const stream = await fetch(`${origin}/jobs/${id}`, { headers: { accept: 'text/event-stream' } })
        const answer = fetch(`${origin}/slow`).then(async (response) => [response.status, await response.text()])
        const poll = fetch(`${origin}/jobs/${id}`, { headers: { prefer: 'wait=50' } }).then(({ status }) => status)
        await until(() => text().includes('in route') && text().includes('wait=50'), 'all to be under way')
        const exited = once(child, 'exit')
        child.kill(signal)
        assert.deepEqual(await answer, [200, 'did it'])
        // Neither a stream nor a long poll holds up the end, and neither is cut.
        assert.match(await stream.text(), /^event: state\n/)
        assert.equal(await poll, 200)
        assert.deepEqual(await exited, [0, null])
      } finally {
        child.kill('SIGKILL')
      }
    })
  }
}
