/**
 * How long a job waits for an idle worker: from the call of push, in another process, to the handler's start. One job at a time;
 * the next is pushed some random milliseconds after the last was handled, in step with nothing.
 */
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { machineTime } from '../../bench/contender.ts'
import { quantile } from '../../bench/statistics.ts'
import { openContender } from '../contender.ts'
import { Tally } from '../tally.ts'
import type { Measure, WaitTask } from '../task.ts'

const PRODUCER = fileURLToPath(new URL('producer.ts', import.meta.url))
export const LINE = 'wait'
/** Connections and code are new to the first jobs, which are not counted. */
const WARMING = 20
const GAP = 20

export const wait: Measure<WaitTask> = async ({ contender: name, url, samples }) => {
  const waits: number[] = []
  const handled = new Tally()
  const contender = await openContender(name, { url, concurrency: 10, forget: false })
  const line = contender.line(LINE, async ({ sent = 0 }) => {
    waits.push(machineTime() - sent)
    handled.add()
  })
  const warming = Math.min(WARMING, samples)
  const producer = fork(PRODUCER, [name, url], { execArgv: ['--disable-warning=ExperimentalWarning'] })
  try {
    await new Promise((resolve, reject) => {
      producer.once('message', resolve)
      producer.once('exit', (code) => reject(new Error(`the producer ended with ${code}`)))
    })
    line.work()
    for (let n = 1; n <= warming + samples; n++) {
      await sleep(1 + Math.random() * GAP)
      producer.send(n)
      await handled.reaches(n)
    }
  } finally {
    producer.removeAllListeners('exit')
    producer.disconnect()
  }
  await line.stop()
  const counted = waits.slice(warming)
  return { p50: quantile(counted, 0.5), p99: quantile(counted, 0.99) }
}
