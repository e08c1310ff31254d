/** Whatever becomes of the process that started servers, they end after it, and their folders go. */

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { scratch } from '../support/cleaning.ts'
import { untilCalm } from '../support/until.ts'
import { isAlive } from './fixtures.ts'
import { pgbouncerProgram, postgresFolder, redisPrograms } from './programs.ts'
import { ServerMissing } from './server.ts'

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/** Why not; false: all programs are here. */
async function lacking(): Promise<string | false> {
  try {
    await Promise.all([redisPrograms(), postgresFolder(), pgbouncerProgram()])
    return false
  } catch (error) {
    if (error instanceof ServerMissing) return error.message
    throw error
  }
}
const skip = await lacking()

/** Starts the file in a process whose servers are all in the folder. */
function start(t: TestContext, folder: string, file: string, ...args: string[]): ChildProcess {
  chmodSync(folder, 0o755) // servers that run under an account of their own have to pass
  const child = spawn(process.execPath, ['--no-warnings', here(file), ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function firstLine(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout)
  for await (const line of createInterface(child.stdout)) return line
  throw new Error('it said nothing')
}

/** Processes that mention the folder, their servers among them. */
const mentioning = (folder: string) =>
  execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.includes(folder))

async function gone(folder: string): Promise<void> {
  await untilCalm(async () => readdirSync(folder).length === 0 && mentioning(folder).length === 0, 'all of it is gone')
}

interface Held {
  guard: number
  pids: number[]
  folders: string[]
}

for (const stopped of [false, true]) {
  test(`SIGKILL ends servers with their process${stopped ? ', stopped ones too' : ''}`, { skip }, async (t) => {
    const folder = scratch(t)
    const child = start(t, folder, 'roles/holder.ts')
    const held: Held = JSON.parse(await firstLine(child))
    assert.ok(held.pids.length === 3 && held.pids.every(isAlive) && isAlive(held.guard))
    assert.ok(held.folders.every((each) => each.startsWith(folder) && existsSync(each)))
    if (stopped) for (const pid of held.pids) process.kill(pid, 'SIGSTOP')
    child.kill('SIGKILL')
    await gone(folder)
    await untilCalm(async () => ![...held.pids, held.guard].some(isAlive), 'so are the processes')
  })
}

test('SIGKILL at any moment of the start leaves nothing behind', { skip }, async (t) => {
  for (let wait = 50; wait < 1500; wait += 240) {
    const folder = scratch(t)
    const child = start(t, folder, 'roles/holder.ts')
    await new Promise((resolve) => setTimeout(resolve, wait))
    child.kill('SIGKILL')
    await once(child, 'close')
    await gone(folder)
  }
})

test('servers end when their guard is killed', { skip }, async (t) => {
  const folder = scratch(t)
  const child = start(t, folder, 'roles/holder.ts')
  const held: Held = JSON.parse(await firstLine(child))
  process.kill(held.guard, 'SIGKILL')
  await gone(folder)
  assert.ok(isAlive(child.pid ?? 0))
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
  test(`npm run servers prints the URL, runs, and leaves nothing at ${signal}`, { skip }, async (t) => {
    const folder = scratch(t)
    const child = start(t, folder, 'main.ts', 'redis')
    const line = await firstLine(child)
    const port = /^export MILLPOND_TEST_REDIS=redis:\/\/127\.0\.0\.1:(\d+)$/.exec(line)?.[1]
    assert.ok(port, line)
    assert.equal(execFileSync((await redisPrograms()).cli, ['-p', port, 'ping'], { encoding: 'utf8' }), 'PONG\n')
    child.kill(signal)
    const [code] = await once(child, 'exit')
    assert.equal(code, signal === 'SIGKILL' ? null : 0)
    await gone(folder)
  })
}
