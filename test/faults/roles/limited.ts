/** Works off a queue with limits, and writes each start and each end of a job into the file that all processes share. */

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueOptions, WorkOptions } from '../../../src/index.ts'
import { line } from '../ledger.ts'
import { config, onHearing, openPatiently, say, sayTrouble } from './role.ts'

export interface LimitedConfig {
  url: string
  queue: string
  options: QueueOptions
  work: WorkOptions
  ledger: string
  /** How long a handler takes: from the first to the second, in milliseconds. */
  takes: readonly [number, number]
  /** The shares of runs that fail, and that pause their group: 0 to 1, 0 unless set. */
  fails?: number
  pauses?: number
  /** How long a pause is, in milliseconds. */
  pause?: number
}

const { url, queue, options, work, ledger, takes, fails = 0, pauses = 0, pause = 1 } = config<LimitedConfig>()
const [least, most] = takes
// Appended at once, so that the lines of all processes have one order.
const file = openSync(ledger, 'a')
const pond = await openPatiently(url)
sayTrouble(pond)
pond.on('stale', ({ id }) => say('stale', { id }))
pond.on('dead', ({ id, error }) => say('dead', { id, error }))
let ran = 0

pond.queue(queue, options).work(async (job, ctx) => {
  writeSync(file, line('start', process.pid, job))
  await sleep(least + Math.random() * (most - least))
  const luck = Math.random()
  writeSync(file, line(luck < fails + pauses ? 'back' : 'end', process.pid, job))
  if (ran++ === 0) say('busy')
  if (luck < fails) throw new Error('it failed')
  return luck < fails + pauses ? ctx.rateLimited(pause) : undefined
}, work)

onHearing('close', async () => {
  await pond.close()
  say('closed')
  process.disconnect()
})
