/** CPU that a process and its children have used, from Linux' /proc. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

interface Usage {
  parent: number
  /** Seconds, user and system, its own. */
  own: number
  /** Of its children that are gone. */
  gone: number
}

/** undefined: it has just ended. */
function usageOf(pid: number): Usage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name, and may hold anything; what follows is field 3 and on.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = (field: number): number => Number(fields[field - 3]) / TICKS
    return { parent: Number(fields[1]), own: ticks(14) + ticks(15), gone: ticks(16) + ticks(17) }
  } catch {
    return undefined
  }
}

/** Seconds of the server and all that it has started, those that ended included. */
export function familyCpu(pid: number): number {
  const server = usageOf(pid)
  if (server === undefined) throw new Error(`the process ${pid} has ended`)
  let sum = server.own + server.gone
  for (const name of readdirSync('/proc')) {
    const usage = /^\d+$/.test(name) ? usageOf(Number(name)) : undefined
    if (usage?.parent === pid) sum += usage.own
  }
  return sum
}
