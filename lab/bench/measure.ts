/** What is measured: each kind of task is one file in `measures/`, and runs in a fresh process. */
import type { ContenderName, Durability } from './contender.ts'

/** What the handlers do: nothing, or nothing after one turn of the event loop. Both are async functions. */
export type Work = 'nothing' | 'a turn'

interface OnQueue {
  contender: ContenderName
  durability: Durability
  /** Finished jobs leave at once; false unless set. */
  forget?: boolean
}
export interface PushTask extends OnQueue {
  measure: 'push'
  /** How: one awaited after the other; by 50 loops at once; 500 a call; the same with 2 calls in flight. */
  way: 'one' | 'flight' | 'bulk' | 'bulk2'
  count: number
  rounds: number
}
export interface DrainTask extends OnQueue {
  measure: 'drain'
  /** `backlog`: timed from the start of the worker on a full queue. `many`, `each`: from the first push, the worker running already, by `pushMany` or a push each. */
  from: 'backlog' | 'many' | 'each'
  work: Work
  count: number
  rounds: number
}
export interface WaitTask extends OnQueue {
  measure: 'wait'
  /** The producer is a process of its own. */
  across: boolean
  samples: number
  /** Milliseconds between pushes, drawn evenly from 1 to this. */
  gap: number
}
export interface IdleTask {
  measure: 'idle'
  contender: ContenderName | 'nothing'
  durability: Durability
  seconds: number
}
export interface BacklogTask {
  measure: 'backlog'
  durability: Durability
  small: number
  large: number
  samples: number
}
export interface PrefetchTask {
  measure: 'prefetch'
  /** Milliseconds; or a fixed number of jobs, claimed by a plain loop over the store. */
  window: number | undefined
  fixed: number | undefined
  long: number
  short: number
  count: number
}
export type Task = PushTask | DrainTask | WaitTask | IdleTask | BacklogTask | PrefetchTask

/** One number per thing measured. */
export type Outcome = Record<string, number>
export type Measure<Kind extends Task> = (task: Kind, dir: string) => Promise<Outcome>

export async function perform(task: Task, dir: string): Promise<Outcome> {
  switch (task.measure) {
    case 'push':
      return (await import('./measures/push.ts')).push(task, dir)
    case 'drain':
      return (await import('./measures/drain.ts')).drain(task, dir)
    case 'wait':
      return (await import('./measures/wait.ts')).wait(task, dir)
    case 'idle':
      return (await import('./measures/idle.ts')).idle(task, dir)
    case 'backlog':
      return (await import('./measures/backlog.ts')).backlog(task, dir)
    case 'prefetch':
      return (await import('./measures/prefetch.ts')).prefetch(task, dir)
  }
}
