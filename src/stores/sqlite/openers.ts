/** Which processes have a file open, and how often. */
import { readdirSync, statSync } from 'node:fs'

export interface Opener {
  pid: number
  /** How many descriptors are open on the file. A library opens the shared memory of a log once, however many connections it has. */
  times: number
}

/** @param but this process, which is left out @returns undefined: the system does not tell */
export function openedBy(path: string, but: number): Opener[] | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  let processes: string[]
  try {
    processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return undefined
  }
  if (file === undefined) return []
  return processes.flatMap((name) => {
    const pid = Number(name)
    if (pid === but) return []
    const times = descriptorsOf(pid).filter((path) => isSame(path, file)).length
    return times > 0 ? [{ pid, times }] : []
  })
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`)
  } catch {
    // Another user's, or it has ended.
    return []
  }
}

function isSame(path: string, file: { ino: bigint; dev: bigint }): boolean {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    return found?.ino === file.ino && found.dev === file.dev
  } catch {
    return false
  }
}
