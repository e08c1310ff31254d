/**
 * Pushes without end. An id goes into the log, with a synchronous write, only once its push has resolved: whatever kills
 * this process, the log holds no id that was not acknowledged, and lacks at most what was acknowledged at that very moment.
 */

import { openSync, writeSync } from 'node:fs'
import { Millpond, type QueueOptions } from '../../../src/index.ts'
import { codeOf, config, say, sayTrouble } from './role.ts'

export interface ProducerConfig {
  url: string
  queue: string
  options?: QueueOptions
  /** File for the acknowledged ids. */
  log: string
  inFlight: number
  signals?: boolean
}

const { url, queue, options, log, inFlight, signals } = config<ProducerConfig>()
const file = openSync(log, 'a')
const pond = await Millpond.open(url, { signals: signals ?? false })
sayTrouble(pond)
const jobs = pond.queue(queue, options)
let pushed = 0

async function pushForever(): Promise<void> {
  for (;;) {
    try {
      const { id } = await jobs.push({ from: process.pid, n: pushed })
      writeSync(file, `${id}\n`)
      if (pushed++ === 0) say('busy')
    } catch (error) {
      const code = codeOf(error)
      if (code === 'Closed') return
      say('trouble', { code, message: String(error) })
      if (code !== 'StoreBusy') throw error
    }
  }
}

for (let i = 0; i < inFlight; i++) void pushForever()
