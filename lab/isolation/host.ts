/** A process that runs one harm apart from itself, and tells how that went while its own timer ticks on. */
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { CONTAINERS } from './containers.ts'
import { isHarm } from './harm.ts'

export interface Told {
  how: string
  ms: number
  /** The longest time for which the host's event loop stood still, in milliseconds. */
  stall: number
}

const [, , container = '', harm] = process.argv
const start = CONTAINERS[container]
if (start === undefined || !isHarm(harm)) throw new Error(`no ${container} or no ${harm}`)
const delay = monitorEventLoopDelay({ resolution: 5 })
delay.enable()
const began = performance.now()
const how = await start(harm)
const told: Told = { how, ms: performance.now() - began, stall: delay.max / 1e6 }
process.send?.(told)
if (process.connected) await once(process, 'disconnect')
process.exit()
