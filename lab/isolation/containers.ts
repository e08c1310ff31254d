/** The ways to run a harm apart from its host. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Millpond } from '../../src/index.ts'
import type { Harm } from './harm.ts'
import { CPU, EVERY, MEMORY, PATIENCE } from './limits.ts'
import { cpuTime, memory } from './processes.ts'

/** Starts the harm; resolves once it is over to how it ended. */
export const CONTAINERS: Record<string, (harm: Harm) => Promise<string>> = {
  'thread with resourceLimits': inThread,
  'process that its parent watches through /proc': inProcess,
  'isolate: a process with a watchdog thread': inWorker,
}

const MIB = 1024 ** 2
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** A thread has no CPU time of its own that its host could read without its help, so the limit is on time: three times as much. */
async function inThread(harm: Harm): Promise<string> {
  const thread = new Worker(new URL('harm.ts', import.meta.url), {
    workerData: harm,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY / MIB, maxYoungGenerationSizeMb: 16 },
  })
  const limit = setTimeout(() => void thread.terminate(), CPU * 3)
  let how = ''
  thread.once('error', (error) => {
    how = error instanceof Error ? String(Reflect.get(error, 'code') ?? error.name) : 'an error'
  })
  const [code] = await once(thread, 'exit')
  clearTimeout(limit)
  return how === '' ? `exit code ${code}` : how
}

async function inProcess(harm: Harm): Promise<string> {
  const flags = [`--max-old-space-size=${MEMORY / MIB}`, file('harm.ts'), harm]
  const child = spawn(process.execPath, flags, { stdio: 'ignore' })
  watch(child)
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(patience)
  return signal ?? `exit code ${code}`
}

/** As applications use it: the code of the job's error. */
async function inWorker(harm: Harm): Promise<string> {
  const pond = await Millpond.open('memory:')
  const { promise, resolve } = Promise.withResolvers<string>()
  pond.on('dead', ({ error }) => resolve(error.code))
  pond.on('completed', () => resolve('it answered'))
  const queue = pond.queue<string>('harm', { retry: { attempts: 1 } })
  queue.work(new URL('handler.ts', import.meta.url), { isolate: { memory: MEMORY, cpu: CPU }, concurrency: 1 })
  await queue.push(harm, { timeout: PATIENCE })
  return promise
}

function watch(child: ChildProcess): void {
  const { pid = 0 } = child
  const timer = setInterval(() => {
    if (cpuTime(pid) > CPU || memory(pid, 'VmRSS') > MEMORY) child.kill('SIGKILL')
  }, EVERY)
  child.once('exit', () => clearInterval(timer))
}
