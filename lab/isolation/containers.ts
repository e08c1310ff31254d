/** The ways to run a harm apart from its host. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Harm } from './harm.ts'
import { CPU, EVERY, MEMORY, PATIENCE } from './limits.ts'

/** Starts the harm; resolves once it is over to how it ended. */
export const CONTAINERS: Record<string, (harm: Harm) => Promise<string>> = {
  'thread with resourceLimits': inThread,
  'process, watched by its parent': (harm) => inProcess(harm, ['harm.ts'], watch),
  'process with a watchdog thread': (harm) => inProcess(harm, ['watched.ts', '--'], () => {}),
}

const MIB = 1024 ** 2
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** A thread has no CPU time of its own that its host could read without its help, so the limit is on time. */
async function inThread(harm: Harm): Promise<string> {
  const thread = new Worker(new URL('harm.ts', import.meta.url), {
    workerData: harm,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY / MIB, maxYoungGenerationSizeMb: 16 },
  })
  const limit = setTimeout(() => void thread.terminate(), CPU)
  let how = ''
  thread.once('error', (error) => {
    how = String(Reflect.get(error, 'code') ?? error.name)
  })
  const [code] = await once(thread, 'exit')
  clearTimeout(limit)
  return how === '' ? `exit code ${code}` : how
}

async function inProcess(harm: Harm, [script = '', ...args]: string[], watching: typeof watch): Promise<string> {
  const flags = [`--max-old-space-size=${MEMORY / MIB}`, file(script), ...args, harm]
  const child = spawn(process.execPath, flags, { stdio: 'ignore' })
  watching(child)
  // As the time limit of a job, which ends what takes no CPU time.
  const patience = setTimeout(() => child.kill('SIGKILL'), PATIENCE)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(patience)
  return signal ?? `exit code ${code}`
}

function watch(child: ChildProcess): void {
  const timer = setInterval(() => {
    try {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      // utime and stime in ticks of 10 ms, rss in pages of 4 KiB.
      const cpu = (Number(fields[11]) + Number(fields[12])) * 10
      if (cpu > CPU || Number(fields[21]) * 4096 > MEMORY) child.kill('SIGKILL')
    } catch {
      // It has ended.
    }
  }, EVERY)
  child.once('exit', () => clearInterval(timer))
}
