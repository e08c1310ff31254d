/**
 * What contains a handler that does harm: a thread with resource limits, a process that its parent watches through /proc, or a process
 * with a watchdog thread. Each trial is a host of its own, as some harm ends the host. Linux only.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { holds } from '../child.ts'
import type { Experiment, Row } from '../experiment.ts'
import { tell } from '../progress.ts'
import { CONTAINERS } from './containers.ts'
import { HARMS, type Harm } from './harm.ts'
import type { Told } from './host.ts'
import { CPU, MEMORY } from './limits.ts'

const MIB = 1024 ** 2
const isTold = holds<Told>('how', 'ms', 'stall')

export const isolation: Experiment<Record<never, never>> = {
  id: 'isolation',
  flags: {},
  about: () => `Harm in a thread or process of its own, with limits of ${MEMORY / MIB} MiB and ${CPU} ms of CPU time.`,
  async *measure() {
    for (const container of Object.keys(CONTAINERS)) {
      const rows: Row[] = []
      for (const harm of Object.keys(HARMS) as Harm[]) {
        tell(`${container}: ${harm}`)
        rows.push(await trial(container, harm))
      }
      const orphan = await orphaned(container)
      rows.push({ cells: ['host killed, loop goes on', '', orphan, '', '', ''], bars: [], figures: { orphan } })
      yield { title: container, head: ['harm', 'host', 'ended by', 'ms', 'MiB at most', 'host stood still, ms'], rows }
    }
  },
}

function host(container: string, harm: Harm): ChildProcess {
  const script = fileURLToPath(new URL('host.ts', import.meta.url))
  return fork(script, [container, harm], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
}

async function trial(container: string, harm: Harm): Promise<Row> {
  const process = host(container, harm)
  let peak = 0
  const watching = setInterval(() => {
    for (const pid of family(process.pid ?? 0)) peak = Math.max(peak, highWater(pid))
  }, 2)
  const ended = once(process, 'exit').then(([code, signal]) => `ended: ${signal ?? `exit code ${code}`}`)
  const told: unknown = await Promise.race([once(process, 'message').then(([message]) => message), ended])
  clearInterval(watching)
  if (process.connected) process.disconnect()
  const shown = (peak / MIB).toFixed(0)
  if (!isTold(told)) {
    return { cells: [harm, String(told), '', '', shown, ''], bars: [], figures: { harm, host: told, peak } }
  }
  const { how, ms, stall } = told
  const cells = [harm, 'goes on', how, ms.toFixed(0), shown, stall.toFixed(0)]
  return { cells, bars: [], figures: { harm, ...told, peak } }
}

/** Kills a host while its harm loops. @returns what became of the loop a little later than its limit */
async function orphaned(container: string): Promise<string> {
  const process = host(container, 'endless loop')
  await sleep(CPU / 2)
  const children = family(process.pid ?? 0).filter((pid) => pid !== process.pid)
  process.kill('SIGKILL')
  await sleep(CPU * 2)
  const left = children.filter((pid) => highWater(pid) > 0)
  for (const pid of left) globalThis.process.kill(pid, 'SIGKILL')
  return left.length > 0 ? 'nobody: it went on' : 'over'
}

/** The process and its children. */
function family(pid: number): number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`)
    const children = tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' '),
    )
    return [pid, ...children.filter((child) => child !== '').map(Number)]
  } catch {
    return []
  }
}

/** Bytes that a process has had in memory at most; 0 if it has ended. */
function highWater(pid: number): number {
  try {
    const [, kib = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib) * 1024
  } catch {
    return 0
  }
}
