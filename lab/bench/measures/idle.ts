/** What a process costs that has a worker and no work: CPU of all its threads, in per cent of one core. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openContender } from '../contender.ts'
import type { Measure } from '../task.ts'

/** After opening, compiling and first garbage are over, in ms. */
const SETTLE = 2000

export const idle: Measure<'idle'> = async ({ contender: name, url, seconds }) => {
  const setting = { url, concurrency: 10, forget: false }
  const contender = name === 'nothing' ? undefined : await openContender(name, setting)
  const line = contender?.line('idle', async () => {})
  line?.work()
  await sleep(SETTLE)
  const before = process.cpuUsage()
  const began = performance.now()
  await sleep(seconds * 1000)
  const { user, system } = process.cpuUsage(before)
  const percent = ((user + system) / 1000 / (performance.now() - began)) * 100
  await line?.stop()
  await contender?.close()
  return { percent }
}
