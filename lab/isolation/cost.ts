/** What a handler in a process of its own costs: until it is there, while it waits, and by job. All handlers do nothing. */
import { type Job, Millpond, type Worker } from '../../src/index.ts'
import type { Row, Table } from '../experiment.ts'
import { tell } from '../progress.ts'
import { children, memory } from './processes.ts'

const JOBS = 20_000
const MIB = 1024 ** 2
const HANDLER = new URL('handler.ts', import.meta.url)
const BATCH_HANDLER = new URL('batch-handler.ts', import.meta.url)
const isolate = { memory: '256MB', cpu: '30s' }

type Start = (queue: ReturnType<Millpond['queue']>) => Worker
const CASES: Readonly<Record<string, Start>> = {
  'in the worker’s process': (queue) => queue.work((_: Job) => undefined, { concurrency: 10 }),
  'isolate, 1 process': (queue) => queue.work(HANDLER, { isolate, concurrency: 1 }),
  'isolate, 2 processes': (queue) => queue.work(HANDLER, { isolate, concurrency: 2 }),
  'isolate, 1 process, batches of 100': (queue) =>
    queue.work(BATCH_HANDLER, { isolate, concurrency: 1, batch: { max: 100 } }),
}

export async function cost(): Promise<Table> {
  const rows: Row[] = []
  for (const [name, start] of Object.entries(CASES)) {
    tell(name)
    rows.push(await measured(name, start))
  }
  const head = ['handler', 'until the first job is done, ms', 'MiB, each process', 'jobs/s', 'CPU µs a job']
  return { title: 'What it costs, on the memory store', head, rows, notes: ['CPU: of the worker’s process alone.'] }
}

async function measured(name: string, start: Start): Promise<Row> {
  const pond = await Millpond.open('memory:')
  const queue = pond.queue('cost')
  let done = 0
  let arrived = () => {}
  pond.on('completed', () => {
    done++
    arrived()
  })
  const reach = (count: number) =>
    new Promise<void>((resolve) => {
      arrived = () => {
        if (done >= count) resolve()
      }
      arrived()
    })
  const began = performance.now()
  start(queue)
  await queue.push(null)
  await reach(1)
  const first = performance.now() - began
  // Warm, both sides.
  await queue.pushMany(Array.from({ length: JOBS / 10 }, () => null))
  await reach(1 + JOBS / 10)
  const cpu = process.cpuUsage()
  const from = performance.now()
  await queue.pushMany(Array.from({ length: JOBS }, () => null))
  await reach(1 + JOBS / 10 + JOBS)
  const rate = (JOBS / (performance.now() - from)) * 1000
  const { user, system } = process.cpuUsage(cpu)
  const resident = children(process.pid).map((pid) => memory(pid, 'VmRSS'))
  await pond.close()
  const most = resident.length === 0 ? '' : (Math.max(...resident) / MIB).toFixed(0)
  const each = (user + system) / JOBS
  const cells = [name, first.toFixed(0), most, Math.round(rate).toLocaleString('en'), each.toFixed(0)]
  return { cells, bars: [], figures: { name, first, resident, rate, cpuPerJob: each } }
}
