/**
 * `millpond serve`, as a process, delivers to a receiver that answers with randomly broken HTTP, and stays up.
 * `MILLPOND_BROKEN_SEED` makes other answers.
 */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { answerBroken } from './broken-answers.ts'
import { Dice } from './hostile-requests.ts'
import { rawReceiver } from './raw-receiver.ts'

const SECONDS = depth(0, 30)
const SEED = Number(process.env.MILLPOND_BROKEN_SEED ?? 20_261_122)
/** Jobs at a time; unless seconds are given, one time is all. */
const BATCH = 500
/** So many finished jobs the memory store keeps. */
const KEPT = 10_000
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** The process, where it listens, and what it has written so far. */
async function startServe(
  args: readonly string[],
): Promise<{ child: ChildProcess; origin: string; text: () => string }> {
  const env = { ...process.env, MILLPOND_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}` }
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', ...args], {
    env,
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let text = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8')
  })
  let origin = ''
  await until(() => {
    origin = /listening on (http:\S+)/.exec(text)?.[1] ?? ''
    return origin !== '' || child.exitCode !== null
  }, 'serve to listen')
  assert.notEqual(origin, '', text)
  return { child, origin, text: () => text }
}

test('serve stays up', { timeout: (SECONDS + 120) * 1000 }, async () => {
  const dice = new Dice(SEED)
  let good = false
  let answered = 0
  const receiver = await rawReceiver((socket) => {
    answered++
    if (good) socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\ntrue')
    else answerBroken(socket, dice)
  })
  const deliver = [
    '--deliver',
    `hooks=${receiver.origin}/`,
    '--deliver-concurrency',
    '50',
    '--deliver-timeout',
    '300ms',
  ]
  const { child, origin, text } = await startServe(['--store', 'memory:', ...deliver])
  const isUp = () => child.exitCode === null && child.signalCode === null
  const ask = async (path: string, body?: unknown) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${origin}${path}`, body === undefined ? {} : init)
    assert.ok(response.ok, `${path}: ${response.status}`)
    return Object(await response.json())
  }
  try {
    const over = performance.now() + SECONDS * 1000
    let pushed = 0
    do {
      await ask('/v1/queues/hooks/batches', {
        jobs: Array.from({ length: BATCH }, (_, data) => ({ data, attempts: 1 })),
      })
      pushed += BATCH
      let counts: Record<string, number> = {}
      await until(
        async () => {
          assert.ok(isUp(), text())
          counts = (await ask('/v1/queues/hooks')).counts
          return counts.waiting === 0 && counts.running === 0
        },
        `the jobs to be tried, at ${JSON.stringify(counts)}`,
      )
      // Each came to an end: none was lost, and none is left.
      assert.ok((counts.done ?? 0) + (counts.dead ?? 0) >= Math.min(pushed, KEPT), JSON.stringify(counts))
      assert.ok((counts.done ?? 0) > 0 && (counts.dead ?? 0) > 0, JSON.stringify(counts))
    } while (performance.now() < over)
    assert.ok(answered >= pushed / 2, `${answered} answers to ${pushed} jobs`)
    good = true
    const { id } = await ask('/v1/queues/hooks/jobs', { data: 'the last' })
    await until(async () => (await ask(`/v1/jobs/${id}`)).state === 'done', 'a good answer to be taken')
    if (SECONDS > 0) console.log(`${pushed} jobs, ${answered} answers in ${SECONDS} s`)
    child.kill('SIGTERM')
    await once(child, 'exit')
    assert.equal(child.exitCode, 0, text())
    assert.doesNotMatch(text(), /Unhandled|uncaught|\bat .+:\d+/)
  } finally {
    if (isUp()) child.kill('SIGKILL')
    await receiver.close()
  }
})
