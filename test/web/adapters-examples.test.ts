/** The examples of each adapter, run as they are, and asked what anybody would ask them. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bodyOf, isProblem } from './serving.ts'

const preload = new URL('adapters-source.ts', import.meta.url).href

for (const name of ['web-node', 'web-express', 'web-fastify', 'web-hono']) {
  test(`examples/${name}.ts`, { timeout: 60_000 }, async () => {
    const file = fileURLToPath(new URL(`../../examples/${name}.ts`, import.meta.url))
    assert.ok(readFileSync(file, 'utf8').trimEnd().split('\n').length <= 40)
    const env = { ...process.env, PORT: '0', STORE: 'memory:' }
    const child = spawn(process.execPath, ['--import', preload, file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      await asked(await origin(createInterface(child.stdout)))
    } finally {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit')
        child.kill()
        await exited
      }
    }
  })
}

async function origin(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const [url] = /http:\/\/\S+/.exec(line) ?? []
    if (url !== undefined) return url
  }
  throw new Error('it ended without saying where it listens')
}

async function asked(server: string): Promise<void> {
  const headers = { 'content-type': 'application/json', prefer: 'wait=20' }
  const post = (body: string) => fetch(`${server}/emails`, { method: 'POST', headers, body })
  const response = await post('{"to":"ada@example.org"}')
  const { id, state, result } = await bodyOf(response)
  assert.deepEqual([response.status, state, result], [200, 'done', 'sent to ada@example.org'])
  assert.equal(response.headers.get('location'), `/jobs/${String(id)}`)
  const job = `${server}/jobs/${String(id)}`
  assert.equal((await bodyOf(await fetch(job))).state, 'done')
  assert.match(await (await fetch(job, { headers: { accept: 'text/event-stream' } })).text(), /^event: done\n/)
  await isProblem(await fetch(job, { method: 'DELETE' }), 409)
  await isProblem(await fetch(`${server}/jobs/none`), 404, 'JobUnknown')
  await isProblem(await post('{'), 400, 'PayloadNotDecodable')
}
