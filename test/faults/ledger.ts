/**
 * What the processes of a test have written into one file: each start and each end of a job, and each kill. Its order needs no clock: an end is
 * written before the store hears of it, and a start after the store's claim. So a job that could start only since another ended is written after it.
 */

import { Journal } from './journal.ts'

/** For all processes of a machine the same, in milliseconds. */
export const machineTime = (): number => Number(process.hrtime.bigint()) / 1e6

export type LineKind = 'start' | 'end' | 'back' | 'killed'

/** A line of the file. A kill is of a process; the others are of a job. `back`: it ran, and is to run again. */
export function line(kind: LineKind, pid: number, job?: { id: string; fence: number; group: string | null }): string {
  return `${kind} ${machineTime()} ${pid} ${job?.group ?? ''} ${job?.id ?? ''} ${job?.fence ?? ''}\n`
}

class Group {
  /** Jobs that run now: `pid id fence`. */
  readonly running = new Set<string>()
  readonly started = new Set<string>()
  most = 0
  /** How long after the last kill as many as may ran for the first time; undefined: not yet. */
  fullAfter: number | undefined
}

export class Ledger {
  readonly #journal: Journal
  readonly #limit: number
  readonly #groups = new Map<string, Group>()
  readonly #killed = new Set<string>()
  /** What all processes together were told to run by the store, ever. */
  starts = 0
  ends = 0
  /** Runs that were to be followed by another one. */
  backs = 0
  /** Most jobs that ever ran at once. */
  mostInAll = 0
  /** Jobs that run now. */
  running = 0
  /** Runs that a kill cut short. */
  cut = 0
  readonly ended = new Set<string>()
  #read = 0
  #killedAt = 0

  /** @param limit how many of a group may run at once */
  constructor(path: string, groups: readonly string[], limit: number) {
    this.#journal = new Journal(path)
    this.#limit = limit
    for (const group of groups) this.#groups.set(group, new Group())
  }

  /** Takes in what was written since. */
  read(): this {
    const { lines } = this.#journal
    for (; this.#read < lines.length; this.#read++) this.#take(lines[this.#read] ?? '')
    return this
  }

  #take(words: string): void {
    const [kind, time = '', pid = '', name = '', id = '', fence = ''] = words.split(' ')
    if (kind === 'killed') this.#kill(pid, Number(time))
    const group = this.#groups.get(name)
    if (group === undefined) return
    const run = `${pid} ${id} ${fence}`
    if (kind === 'end' || kind === 'back') {
      if (group.running.delete(run)) this.running--
      if (kind === 'back') this.backs++
      else {
        this.ended.add(id)
        this.ends++
      }
      return
    }
    this.starts++
    group.started.add(id)
    // A word that was on its way to the file when the signal came.
    if (this.#killed.has(pid)) return
    group.running.add(run)
    this.running++
    this.mostInAll = Math.max(this.mostInAll, this.running)
    group.most = Math.max(group.most, group.running.size)
    if (group.running.size >= this.#limit) group.fullAfter ??= Number(time) - this.#killedAt
  }

  #kill(pid: string, time: number): void {
    this.#killed.add(pid)
    this.#killedAt = time
    for (const group of this.#groups.values()) {
      for (const run of group.running) {
        if (!run.startsWith(`${pid} `)) continue
        group.running.delete(run)
        this.running--
        this.cut++
      }
      group.fullAfter = group.running.size >= this.#limit ? 0 : undefined
    }
  }

  /** Most jobs of any one group that ever ran at once. */
  get most(): number {
    return Math.max(...this.#list((group) => group.most))
  }

  /** Until all groups have run as many jobs as may since the last kill, in milliseconds; Infinity: some have not yet. */
  get fullAfter(): number {
    return Math.max(...this.#list(({ fullAfter }) => fullAfter ?? Number.POSITIVE_INFINITY))
  }

  startedOf(group: string): number {
    return this.#groups.get(group)?.started.size ?? 0
  }

  #list(figure: (group: Group) => number): number[] {
    return [...this.#groups.values()].map(figure)
  }
}
