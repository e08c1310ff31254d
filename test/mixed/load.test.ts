/**
 * Programs in two languages on one queue: a producer in one, a worker in the other, and both are killed under load.
 * What was acknowledged to the producer runs at least once, and ends as done.
 */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Millpond } from '../../src/index.ts'
import { PYTHON_FOLDER, type Python, pythonEnvironment } from '../python/environment.ts'
import { until } from '../servers/run.ts'
import { mixedStores, type Place } from './places.ts'

const JOBS = 3_000
const KILL_PRODUCER_AT = JOBS / 4
const KILL_WORKER_AT = JOBS / 2

type Language = 'TypeScript' | 'Python'

let python: Python
before(async () => {
  python = await pythonEnvironment()
})

for (const { name: store, skip, place } of mixedStores) {
  for (const producer of ['TypeScript', 'Python'] as const) {
    const worker = producer === 'Python' ? 'TypeScript' : 'Python'
    test(`${store}: a producer in ${producer}, a worker in ${worker}, both killed`, { skip }, (t) =>
      load(t, place(t), producer, worker),
    )
  }
}

async function load(t: TestContext, place: Place, producer: Language, worker: Language) {
  const { url, options, folder } = place
  const log = join(folder, 'runs')
  const shared = [url, JSON.stringify(options), 'mixed']
  const acknowledged: string[] = []
  const runs = () => (existsSync(log) ? lines(readFileSync(log, 'utf8')) : [])
  const produce = () => {
    const rest = [`${acknowledged.length}`, `${JOBS - acknowledged.length}`]
    const child = start(t, producer, 'produce', [...shared, ...rest])
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part
      acknowledged.push(...lines(text))
      text = text.slice(text.lastIndexOf('\n') + 1)
    })
    return child
  }
  const work = () => start(t, worker, 'work', [...shared, log])

  const first = produce()
  await until('the first jobs are acknowledged', async () => acknowledged.length >= KILL_PRODUCER_AT)
  await kill(first)
  const early = work()
  const second = produce()
  await until('half of the jobs ran', async () => runs().length >= KILL_WORKER_AT)
  await kill(early)
  work()
  const [code] = second.exitCode === null ? await once(second, 'close') : [second.exitCode]
  assert.equal(code, 0)
  assert.ok(acknowledged.length >= JOBS)

  const pond = await Millpond.open(url, options)
  t.after(() => pond.close())
  const open = new Set(acknowledged)
  await until('all that was acknowledged is done', async () => {
    const states = await Promise.all([...open].map(async (id) => [id, (await pond.job(id))?.state] as const))
    for (const [id, state] of states) if (state === 'done') open.delete(id)
    return open.size === 0
  })
  const ran = new Set(runs())
  assert.deepEqual(
    acknowledged.filter((id) => !ran.has(id)),
    [],
  )
  t.diagnostic(`${acknowledged.length} acknowledged, ${runs().length} runs of ${ran.size} jobs, 0 lost`)
}

/** What the text has in whole lines. */
const lines = (text: string): string[] => text.split('\n').slice(0, -1)

function start(t: TestContext, language: Language, role: 'produce' | 'work', args: string[]): ChildProcess {
  const script = fileURLToPath(new URL(`roles/${role === 'produce' ? 'producer' : 'worker'}.ts`, import.meta.url))
  const child =
    language === 'Python'
      ? spawn(python.program, ['-m', 'tests.load', role, ...args], {
          cwd: PYTHON_FOLDER,
          env: { ...process.env, ...python.variables },
          stdio: ['ignore', 'pipe', 'inherit'],
        })
      : spawn(process.execPath, ['--no-warnings', script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => kill(child))
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}
