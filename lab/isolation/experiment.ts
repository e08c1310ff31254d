/**
 * What contains a handler that does harm: a thread with resource limits, a process that its parent watches through /proc, or `isolate`,
 * a process with a watchdog thread. Each trial is a host of its own, as some harm ends the host. Then what `isolate` costs. Linux only.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { holds } from '../child.ts'
import type { Experiment, Row } from '../experiment.ts'
import { tell } from '../progress.ts'
import { CONTAINERS } from './containers.ts'
import { cost } from './cost.ts'
import { HARMS, type Harm } from './harm.ts'
import type { Told } from './host.ts'
import { CPU, MEMORY } from './limits.ts'
import { children, cpuTime, memory } from './processes.ts'

const MIB = 1024 ** 2
/** Milliseconds of CPU time after which a loop has begun. */
const BEGUN = CPU * 0.8
/** Milliseconds after which what is left of a killed host counts as an orphan. */
const ORPHANED = 100
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
      yield {
        title: container,
        text: ['host', 'ended by'],
        head: ['harm', 'host', 'ended by', 'ms', 'MiB at most', 'host stood still, ms'],
        rows,
      }
    }
    yield await cost()
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
    for (const pid of family(process.pid ?? 0)) peak = Math.max(peak, memory(pid, 'VmHWM'))
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
  const beside = await looping(process.pid ?? 0)
  process.kill('SIGKILL')
  await sleep(ORPHANED)
  const left = beside.filter((pid) => memory(pid, 'VmHWM') > 0)
  for (const pid of left) globalThis.process.kill(pid, 'SIGKILL')
  return left.length > 0 ? 'nobody: it went on' : 'over'
}

/** Waits until the loop of a host has begun. @returns the processes beside the host, none if it loops itself */
async function looping(host: number): Promise<number[]> {
  for (;;) {
    await sleep(10)
    const pids = family(host)
    if (pids.some((pid) => cpuTime(pid) > BEGUN)) return pids.filter((pid) => pid !== host)
  }
}

const family = (pid: number): number[] => [pid, ...children(pid)]
