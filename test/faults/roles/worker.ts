/**
 * Works off a queue. What a handler does to the world is one line in a log, `effect`, id, attempt and fence; with `transaction`
 * it is a row of a table in the same database instead. Further lines tell what became of the attempt: `start` with
 * the job's data, `completed`, `failed`, `stale`.
 */

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond, type QueueOptions, type WorkOptions } from '../../../src/index.ts'
import { config, insertion, onHearing, say, sayTrouble } from './role.ts'

export interface WorkerConfig {
  url: string
  queue: string
  options: QueueOptions
  work: WorkOptions
  log: string
  /** With `transaction`; `effects` unless set. */
  table?: string
  /** A handler waits up to this long before its effect, and again after it, in milliseconds. */
  pause: number
  signals?: boolean
}

const { url, queue, options, work, log, table = 'effects', pause, signals } = config<WorkerConfig>()
const file = openSync(log, 'a')
const pond = await Millpond.open(url, { signals: signals ?? false })
sayTrouble(pond)
pond.on('stale', ({ id, attempt }) => {
  writeSync(file, `stale ${id} ${attempt}\n`)
  say('stale')
})
pond.on('completed', ({ id, attempt }) => writeSync(file, `completed ${id} ${attempt}\n`))
pond.on('failed', ({ id, attempt }) => writeSync(file, `failed ${id} ${attempt}\n`))
pond.on('dead', ({ id, error }) => say('dead', { id, error }))
const insert = insertion(url, table, ['id', 'attempt', 'fence'])
let ran = 0

const worker = pond.queue(queue, options).work(async ({ id, attempt, fence, data }, ctx) => {
  writeSync(file, `start ${id} ${attempt} ${fence} ${JSON.stringify(data)}\n`)
  await sleep(Math.random() * pause)
  if (work.transaction !== true) writeSync(file, `effect ${id} ${attempt} ${fence}\n`)
  else await ctx.tx(insert, [id, attempt, fence])
  // A transaction holds everyone up, but some must be open when the process is killed.
  if (work.transaction !== true || Math.random() < 0.1) await sleep(Math.random() * pause)
  if (ran++ === 0) say('busy')
}, work)

onHearing('load', () => say('load', worker.load))
onHearing('close', async () => {
  await pond.close()
  say('closed')
  process.disconnect()
})
