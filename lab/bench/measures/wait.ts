/** How long a job waits for an idle worker: from the call of push to the handler's start, one job at a time. */
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Line, machineTime, openContender } from '../contender.ts'
import type { Measure, WaitTask } from '../measure.ts'
import { quantile } from '../statistics.ts'

const PRODUCER = fileURLToPath(new URL('producer.ts', import.meta.url))
const LINE = 'wait'
const SETTLE = 300

export const wait: Measure<WaitTask> = async (task, dir) => {
  const waits: number[] = []
  const setting = { durability: task.durability, dir, concurrency: 10, forget: task.forget ?? false }
  const contender = await openContender(task.contender, setting)
  const line = contender.line(LINE, async ({ sent = 0 }) => {
    waits.push(machineTime() - sent)
  })
  line.work()
  // The first job wakes everything up and is not counted.
  await sleep(SETTLE)
  if (task.across) await producer(task, dir)
  else await produce(line, task)
  await line.settled(task.samples + 1)
  const counted = waits.slice(1)
  await line.stop()
  await contender.close()
  return { p50: quantile(counted, 0.5), p99: quantile(counted, 0.99) }
}

/** Pushes at moments that nothing in the worker can be in step with. */
export async function produce(line: Line, { samples, gap }: WaitTask): Promise<void> {
  for (let n = 0; n <= samples; n++) {
    await line.push({ n, sent: machineTime() })
    await sleep(1 + Math.random() * gap)
  }
}

/** In `producer.ts`, a process of its own. */
export async function produceAlone(task: WaitTask, dir: string): Promise<void> {
  const setting = { durability: task.durability, dir, concurrency: 1, forget: task.forget ?? false }
  const contender = await openContender(task.contender, setting)
  await produce(
    contender.line(LINE, async () => {}),
    task,
  )
  await contender.close()
}

function producer(task: WaitTask, dir: string): Promise<void> {
  const child = fork(PRODUCER, [JSON.stringify(task), dir], { execArgv: ['--disable-warning=ExperimentalWarning'] })
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`the producer ended with ${code}`))))
  })
}
