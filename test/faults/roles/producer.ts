/**
 * Pushes until it hears "stop". An id goes into the log, with a synchronous write, only once its push has resolved: whatever
 * kills this process, the log holds no id that was not acknowledged, and lacks at most what was acknowledged at that very moment.
 */

import { openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, Millpond, type QueueOptions } from '../../../src/index.ts'
import { config, onHearing, say, sayTrouble } from './role.ts'

export interface ProducerConfig {
  url: string
  queue: string
  options?: QueueOptions
  /** File for the acknowledged ids. */
  log: string
  inFlight: number
  /** Between the end of a push and the next one, in milliseconds; 0 unless set. */
  pause?: number
  signals?: boolean
}

/** What every job carries: which push it came from. */
export interface Origin {
  from: number
  n: number
}

/** Before a push is made after one that was rejected, in milliseconds. */
const BREATH = 50

const { url, queue, options, log, inFlight, pause = 0, signals } = config<ProducerConfig>()
const file = openSync(log, 'a')
const pond = await Millpond.open(url, { signals: signals ?? false })
sayTrouble(pond)
const jobs = pond.queue<Origin>(queue, options)
let pushed = 0
let count = 0
let stopping = false

async function pushOn(): Promise<void> {
  while (!stopping) {
    const n = count++
    try {
      const { id } = await jobs.push({ from: process.pid, n })
      writeSync(file, `${id}\n`)
      if (pushed++ === 0) say('busy')
      if (pause > 0) await sleep(pause)
    } catch (error) {
      // Anything but an error of ours is not foreseen, and ends the process.
      if (!isMillpondError(error)) throw error
      if (error.code === 'Closed') return
      say('trouble', { code: error.code, message: String(error) })
      if (!error.retryable) throw error
      say('rejected', { from: process.pid, n, message: String(error) })
      await sleep(BREATH)
    }
  }
}

const loops = Array.from({ length: inFlight }, pushOn)
onHearing('stop', async () => {
  stopping = true
  // Every push settles, one way or the other, or this is never said.
  await Promise.all(loops)
  say('stopped')
})
