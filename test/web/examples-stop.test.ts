/** The examples that serve, and `millpond serve`, told to stop by a signal under load: no request is cut, no job is lost, the exit code is 0. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Millpond } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { type Asked, load } from './load.ts'

const CLIENTS = 20
const preload = new URL('adapters-source.ts', import.meta.url).href
const pathOf = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url))

const json = { 'content-type': 'application/json' }
const email = JSON.stringify({ to: 'ada@example.org' })
/** Pushes, and each third waits for its result. */
const emails = (count: number): Asked => {
  const headers = count % 3 === 0 ? { ...json, prefer: 'wait=20' } : json
  return { method: 'POST', path: '/emails', headers, body: email }
}

interface Case {
  args: readonly string[]
  asked: (count: number) => Asked
}

const CASES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(
    ['node', 'express', 'fastify', 'hono'].map((name): [string, Case] => [
      `examples/web-${name}.ts`,
      { args: ['--import', preload, pathOf(`examples/web-${name}.ts`)], asked: emails },
    ]),
  ),
  'examples/cache.ts': {
    args: ['--import', preload, pathOf('examples/cache.ts')],
    asked: (count) => ({ method: count % 5 === 0 ? 'PUT' : 'GET', path: `/products/${count % 10}` }),
  },
  'millpond serve': {
    args: [pathOf('src/cli/main.ts'), 'serve', '--port', '0'],
    asked: (count) => ({ ...emails(1), path: '/v1/queues/emails/jobs', body: JSON.stringify({ data: count }) }),
  },
}

for (const [name, { args, asked }] of Object.entries(CASES)) {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${name} and ${signal}`, { timeout: 60_000 }, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'millpond-stop-'))
      const store = `sqlite:${join(folder, 'app.db')}?sync=normal`
      const env = { ...process.env, PORT: '0', CACHE: 'memory:', STORE: store, MILLPOND_STORE: store }
      const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
      let text = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          text += chunk.toString('utf8')
        })
      }
      try {
        let origin = ''
        await until(() => {
          origin = /listening on (http:\S+)/.exec(text)?.[1] ?? ''
          return origin !== ''
        }, 'it to listen')
        const clients = load(origin, CLIENTS, asked)
        await clients.underWay()
        const exited = once(child, 'exit')
        child.kill(signal)
        await clients.over()
        assert.deepEqual(await exited, [0, null], text)
        if (name !== 'examples/cache.ts') await nothingLost(store, clients.bodies)
      } finally {
        child.kill('SIGKILL')
        rmSync(folder, { recursive: true, force: true })
      }
    })
  }
}

/** Every job that a client was told of is there, and none is left with a worker that is gone. */
async function nothingLost(store: string, bodies: readonly string[]): Promise<void> {
  await using pond = await Millpond.open(store)
  const ids = bodies.map((body): unknown => Object(JSON.parse(body)).id)
  for (const id of ids) assert.ok(typeof id === 'string' && (await pond.job(id)) !== undefined, `job ${id} is there`)
  const [{ counts } = assert.fail('no queue')] = await pond.stats()
  assert.deepEqual([counts.running, counts.scheduled, counts.dead], [0, 0, 0])
  assert.equal(counts.done + counts.waiting, ids.length)
}
