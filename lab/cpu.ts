/** CPU and memory of processes, from Linux' `/proc`. */
import { readdirSync, readFileSync } from 'node:fs'

/** `/proc` counts in hundredths of a second, on every Linux that Node runs on. */
const TICKS = 100

export interface Process {
  parent: number
  name: string
  title: string
  /** Seconds, and those of children that have ended. */
  own: number
  ended: number
}

/** By their ids; undefined where there is no `/proc`. */
export function processes(): ReadonlyMap<number, Process> | undefined {
  const found = new Map<number, Process>()
  try {
    for (const entry of readdirSync('/proc')) {
      const known = /^\d+$/.test(entry) ? look(entry) : undefined
      if (known !== undefined) found.set(Number(entry), known)
    }
  } catch {
    return undefined
  }
  return found.size === 0 ? undefined : found
}

function look(pid: string): Process | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name is in brackets, and may hold anything.
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, parent = 0] = fields
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11)
    const title = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return { parent, name, title, own: (user + system) / TICKS, ended: (endedUser + endedSystem) / TICKS }
  } catch {
    return undefined // It has ended.
  }
}

/** Seconds of a process and its children, those that ended included. */
export function familyCpu(pid: number): number {
  const all = processes()
  const parent = all?.get(pid)
  if (all === undefined || parent === undefined) throw new Error(`the process ${pid} has ended, or there is no /proc`)
  const children = [...all.values()].filter((each) => each.parent === pid)
  return children.reduce((sum, { own }) => sum + own, parent.own + parent.ended)
}

/** Seconds of a process and of all processes under it, those that ended included. NaN where there is no `/proc`. */
export function treeCpu(root: number): number {
  const all = processes()
  if (all === undefined) return Number.NaN
  const isWithin = (pid: number): boolean => pid === root || (pid > 1 && isWithin(all.get(pid)?.parent ?? 0))
  return [...all].reduce((sum, [pid, { own, ended }]) => (isWithin(pid) ? sum + own + ended : sum), 0)
}

/** The most that the process ever had in memory, in bytes; NaN of one that has ended, and where there is no `/proc`. */
export function peakMemory(pid: number | undefined): number {
  try {
    const [, kib = ''] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return kib === '' ? Number.NaN : Number(kib) * 1024
  } catch {
    return Number.NaN
  }
}
