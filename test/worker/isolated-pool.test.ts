/** The processes of a handler: how many there are, how long each is used, and that none is left behind. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { atWork, numbers } from '../api/suite.ts'
import { after } from '../support/cleaning.ts'
import { until } from '../support/until.ts'
import { isAlive, isolated, moduleOf } from './fixture.ts'
import type { Told } from './modules/told.ts'

const linux = { timeout: 60_000, skip: process.platform !== 'linux' && 'only Linux tells of processes' }

test('no more processes than concurrency, and they are kept for the next jobs', { timeout: 60_000 }, async (t) => {
  const { run, queue, pond } = await isolated(t, { concurrency: 2 })
  const pushed = await queue.pushMany(numbers(6).map((): Told => ({ do: 'soon', value: 30 })))
  const pids = new Set(await Promise.all(pushed.map(({ id }) => pond.result(id))))
  assert.equal(pids.size, 2)
  for (let at = 0; at < 5; at++) assert.ok(pids.has(await run({ do: 'pid' })))
})

test('one that keeps over half of the memory is replaced before it fails a job', { timeout: 60_000 }, async (t) => {
  const { run } = await isolated(t, { isolate: { memory: '256MB' } })
  const pids = []
  for (let at = 0; at < 4; at++) pids.push(await run({ do: 'leak' }))
  assert.ok(new Set(pids).size >= 2)
})

test('one is replaced after a thousand calls', { timeout: 60_000 }, async (t) => {
  const { queue, pond } = await isolated(t)
  const pushed = await queue.pushMany(numbers(1001).map((): Told => ({ do: 'pid' })))
  const pids = await Promise.all(pushed.map(({ id }) => pond.result(id)))
  assert.equal(new Set(pids).size, 2)
  assert.equal(pids.filter((pid) => pid === pids[0]).length, 1000)
})

test('one that is ended from outside while idle costs no job', linux, async (t) => {
  const { run } = await isolated(t)
  const pid = Number(await run({ do: 'pid' }))
  process.kill(pid, 'SIGKILL')
  await until(() => !existsSync(`/proc/${pid}`), 'its worker to know')
  assert.notEqual(await run({ do: 'pid' }), pid)
})

test('closing lets handlers finish, and leaves no process', linux, async (t) => {
  const { run, queue, pond, worker } = await isolated(t, { concurrency: 2 })
  const idle = Number(await run({ do: 'pid' }))
  const pushed = await queue.pushMany(numbers(2).map((): Told => ({ do: 'soon', value: 200 })))
  await atWork(worker, 2)
  const { finished, givenBack } = await worker.close()
  assert.deepEqual([finished, givenBack], [2, 0])
  const pids = await Promise.all(pushed.map(({ id }) => pond.result(id)))
  for (const pid of [idle, ...pids]) assert.ok(!isAlive(Number(pid)))
})

test('a close that has waited long enough ends a handler that goes on, and gives its job back', linux, async (t) => {
  const { run, queue, pond, worker } = await isolated(t)
  const pid = Number(await run({ do: 'pid' }))
  const { id } = await queue.push({ do: 'spin' })
  await atWork(worker)
  const { finished, givenBack } = await worker.close({ timeout: 50 })
  assert.deepEqual([finished, givenBack], [0, 1])
  assert.ok(!isAlive(pid))
  assert.equal((await pond.job(id))?.state, 'waiting')
})

/** A process with a worker that runs a job. @returns it and the process of its handler */
async function parent(t: TestContext, told: Told): Promise<{ kill(): void; handler: number }> {
  const code = `
    import { Millpond } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url))}
    const pond = await Millpond.open('memory:')
    const queue = pond.queue('q')
    queue.work(new URL(${JSON.stringify(moduleOf('told'))}), { isolate: {}, concurrency: 1 })
    const { id } = await queue.push({ do: 'pid' })
    const pid = await pond.result(id)
    pond.on('started', () => console.log(pid))
    await queue.push(${JSON.stringify(told)})
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(t, () => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  const handler = Number(line)
  assert.ok(isAlive(handler))
  return { kill: () => child.kill('SIGKILL'), handler }
}

for (const told of ['spin', 'block', 'wait'] as const) {
  test(`a worker that is killed leaves no orphan, though its handler is in ${told}`, linux, async (t) => {
    const { kill, handler } = await parent(t, { do: told })
    after(t, () => isAlive(handler) && process.kill(handler, 'SIGKILL'))
    kill()
    await until(() => !isAlive(handler), 'the handler to be over')
  })
}

test('what a handler prints goes where the worker prints', { timeout: 60_000 }, async (t) => {
  const file = moduleOf('prints')
  const code = `
    import { Millpond } from ${JSON.stringify(new URL('../../src/index.ts', import.meta.url))}
    const pond = await Millpond.open('memory:')
    const queue = pond.queue('q')
    queue.work(new URL(${JSON.stringify(file)}), { isolate: {}, concurrency: 1 })
    const { id } = await queue.push('hello')
    await pond.result(id)
    await pond.close()
  `
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code])
  after(t, () => child.kill('SIGKILL'))
  const text = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) child[stream].on('data', (chunk) => (text[stream] += chunk))
  const [exitCode] = await once(child, 'close')
  assert.deepEqual([exitCode, text], [0, { stdout: 'hello on stdout\n', stderr: 'hello on stderr\n' }])
})
