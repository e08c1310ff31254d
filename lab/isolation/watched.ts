/** A process with a watchdog of its own. The harm begins once the watchdog runs. */
import { Worker } from 'node:worker_threads'
import { HARMS, isHarm } from './harm.ts'
import { CPU, EVERY, MEMORY } from './limits.ts'

const [, , , name] = process.argv
const watchdog = new Worker(new URL('watchdog.ts', import.meta.url), {
  workerData: { memory: MEMORY, cpu: CPU, every: EVERY },
})
watchdog.once('online', () => {
  if (isHarm(name)) HARMS[name]()
})
