/** A worker whose handler does to its own process what the job says. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Millpond } from '../../../src/index.ts'
import { config, sayTrouble } from './role.ts'

export interface PoisonConfig {
  url: string
  queue: string
}

export type Poison = 'exit' | 'abort' | 'kill' | 'throw later' | 'none'

const { url, queue } = config<PoisonConfig>()
const pond = await Millpond.open(url)
sayTrouble(pond)

pond.queue<Poison>(queue, { lease: '400ms' }).work(
  async ({ data }) => {
    await sleep(5)
    if (data === 'exit') process.exit(1)
    if (data === 'abort') process.abort()
    if (data === 'kill') process.kill(process.pid, 'SIGKILL')
    if (data === 'throw later') {
      setImmediate(() => {
        throw new Error('thrown where nobody catches it')
      })
    }
    // Whoever kills the process does not come back.
    if (data !== 'none') await new Promise(() => {})
  },
  { concurrency: 4 },
)
