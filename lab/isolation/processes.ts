/** What Linux tells of processes; of one that has ended nothing, or 0. */
import { readdirSync, readFileSync } from 'node:fs'

function read<T>(of: () => T, otherwise: T): T {
  try {
    return of()
  } catch {
    return otherwise
  }
}

/** The processes that a process has started. */
export function children(pid: number): number[] {
  return read(() => {
    const tasks = readdirSync(`/proc/${pid}/task`)
    const lists = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim())
    return lists.flatMap((list) => list.split(' ')).flatMap((child) => (child === '' ? [] : [Number(child)]))
  }, [])
}

/** Bytes in memory: now, or at most so far. */
export function memory(pid: number, which: 'VmRSS' | 'VmHWM'): number {
  return read(() => {
    const [, kib = '0'] = new RegExp(`${which}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib) * 1024
  }, 0)
}

/** Milliseconds of CPU time, of all threads. */
export function cpuTime(pid: number): number {
  return read(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before it may hold spaces. utime and stime are in ticks of 10 ms.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  }, 0)
}
