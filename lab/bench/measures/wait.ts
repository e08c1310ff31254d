/**
 * How long a job waits for an idle worker: from the call of push, in this process or in another, to the handler's start. One job at a time;
 * the next is pushed some random milliseconds after the last was handled, in step with nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Child } from '../../child.ts'
import { machineTime } from '../../clock.ts'
import { quantile } from '../../statistics.ts'
import { openContender } from '../contender.ts'
import { Tally } from '../tally.ts'
import type { Measure } from '../task.ts'

export const LINE = 'wait'
/** Connections and code are new to the first jobs, which are not counted. */
const WARMING = 20

export const wait: Measure<'wait'> = async ({ contender: name, url, across, samples, gap }) => {
  const waits: number[] = []
  const handled = new Tally()
  const contender = await openContender(name, { url, concurrency: 10, forget: false })
  const line = contender.line(LINE, async ({ sent = 0 }) => {
    waits.push(machineTime() - sent)
    handled.add()
  })
  const warming = Math.min(WARMING, samples)
  const producer = across ? await Child.start(new URL('producer.ts', import.meta.url), [name, url]) : undefined
  line.work()
  for (let n = 1; n <= warming + samples; n++) {
    await sleep(1 + Math.random() * gap)
    if (producer === undefined) void line.push({ n, sent: machineTime() })
    else producer.send(n)
    await handled.reaches(n)
  }
  await producer?.stop()
  await line.stop()
  await contender.close()
  const counted = waits.slice(warming)
  return { p50: quantile(counted, 0.5), p99: quantile(counted, 0.99) }
}
