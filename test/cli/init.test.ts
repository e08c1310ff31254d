/** What `millpond init` writes is run: a request is accepted by the server, and worked off by the worker. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FRAMEWORKS } from '../../src/cli/init/files.ts'
import { missingReason } from '../servers/shared.ts'
import { after, scratch } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { ran } from './in-process.ts'
import { freshUrl } from './stores.ts'

const preload = new URL('../web/adapters-source.ts', import.meta.url).href
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Starts a program that was written, and waits until it says that it is ready. */
async function started(t: TestContext, folder: string, file: string, env: Record<string, string>): Promise<string[]> {
  const child = spawn(process.execPath, ['--import', preload, file], { cwd: folder, env: { ...process.env, ...env } })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', (line) => lines.push(line))
  const closed = once(child, 'close')
  after(t, async () => {
    child.kill('SIGTERM')
    await closed
    assert.equal(child.exitCode, 0, lines.join('\n'))
  })
  await until(() => lines.some((line) => /ready|listening/.test(line)) || child.exitCode !== null, `${file} is ready`)
  assert.equal(child.exitCode, null, lines.join('\n'))
  return lines
}

for (const [framework, ending, kind] of [
  ['express', 'js', 'sqlite'],
  ['fastify', 'ts', 'redis'],
  ['hono', 'ts', 'postgres'],
  ['hono', 'js', 'sqlite'],
] as const) {
  test(`${framework}, .${ending}, on ${kind}: it runs`, {
    skip: kind !== 'sqlite' && missingReason(kind),
  }, async (t) => {
    const folder = join(scratch(t), 'project')
    const url = freshUrl(t, kind)
    const options = ['--framework', framework, '--store', kind, ...(ending === 'ts' ? ['--typescript'] : [])]
    const { code, out, err } = await ran(['init', folder, ...options])
    assert.equal(code, 0, err)
    assert.match(out, new RegExp(`npm install millpond .*${framework}`))
    symlinkSync(modules, join(folder, 'node_modules'))
    const port = await freePort()
    const worker = await started(t, folder, `worker.${ending}`, { MILLPOND_STORE: url })
    await started(t, folder, `server.${ending}`, { MILLPOND_STORE: url, PORT: String(port) })
    const response = await fetch(`http://127.0.0.1:${port}/emails`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', prefer: 'wait=20' },
      body: JSON.stringify({ to: 'ada@example.org' }),
    })
    const answer: unknown = await response.json()
    assert.equal(response.status, 200, JSON.stringify(answer))
    assert.ok(worker.includes('a mail to ada@example.org, attempt 1'), worker.join('\n'))
    assert.match((await ran(['stats', 'emails', '--store', url])).out, /^done +1$/m)
  })
}

test('nothing is overwritten, a package.json stays, and a dry run writes nothing', async (t) => {
  const folder = scratch(t)
  writeFileSync(join(folder, 'package.json'), '{"name":"mine"}')
  const dry = await ran(['init', folder, '--dry-run', '--json'])
  assert.deepEqual(JSON.parse(dry.out).files, ['queues.js', 'server.js', 'worker.js'])
  assert.match(JSON.parse(dry.out).install, /^npm install millpond hono/)
  // Where it is installed it stays: the registry may not have it.
  mkdirSync(join(folder, 'node_modules', 'millpond'), { recursive: true })
  assert.match((await ran(['init', folder, '--dry-run'])).out, /^npm install hono/m)
  assert.equal((await ran(['init', folder])).code, 0)
  assert.equal(readFileSync(join(folder, 'package.json'), 'utf8'), '{"name":"mine"}')
  const again = await ran(['init', folder])
  assert.deepEqual([again.code, /are there already; nothing was written/.test(again.err)], [3, true])
  const typed = join(folder, 'typed')
  mkdirSync(typed)
  writeFileSync(join(typed, 'tsconfig.json'), '{}')
  assert.match((await ran(['init', typed, '--framework', 'express'])).out, /server\.ts/)
  const wrong = await ran(['init', typed, '--framework', 'expres'])
  assert.deepEqual([wrong.code, /did you mean express\?/.test(wrong.err)], [2, true])
  assert.equal(FRAMEWORKS.length, 3)
})
