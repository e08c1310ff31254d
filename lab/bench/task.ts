/** What is measured: each kind of task is one file in `measures/`, and runs in a fresh process on a store with nothing in it. */
import type { ContenderName, Setting } from './contender.ts'

/** What the handlers do: nothing, or nothing after one turn of the event loop. Both are async functions. */
export type Work = 'nothing' | 'a turn'

export interface PushTask {
  measure: 'push'
  /** How: one awaited after the other; by 50 loops at once; 500 a call; the same with 2 calls in flight. */
  way: 'one' | 'flight' | 'bulk' | 'bulk2'
  count: number
  rounds: number
}
export interface DrainTask {
  measure: 'drain'
  /**
   * `backlog`: timed from the start of the worker on a full queue. `many`, `each`: the worker runs already, and time counts from the first
   * push, by `pushMany` or by a push each.
   */
  from: 'backlog' | 'many' | 'each'
  work: Work
  count: number
  rounds: number
  forget: boolean
}
export interface WaitTask {
  measure: 'wait'
  /** The producer is a process of its own. */
  across: boolean
  samples: number
  /** Most ms from the end of a job to the next push. */
  gap: number
}
export interface IdleTask {
  measure: 'idle'
  seconds: number
}
export interface BytesTask {
  measure: 'bytes'
  count: number
}
/** Calls of the store's interface. */
export interface CallsTask {
  measure: 'calls'
  small: number
  large: number
  samples: number
}
export interface BacklogTask {
  measure: 'backlog'
  /** Waiting when the measured pushes begin, and still waiting when the measured drain ends. */
  size: number
  push: number
  drain: number
}
export interface PinnedTask {
  measure: 'pinned'
  /** Of load on each of two databases. */
  seconds: number
  /** Jobs pushed, then drained, again and again. */
  cycle: number
  path: NonNullable<Setting['path']>
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
export interface GroupsTask {
  measure: 'groups'
  groups: number
  /** Jobs of each group. */
  each: number
  /** How many of a group may run at once. */
  limit: number
  /** How they were pushed: all of a group after each other, or one of each group in turn. */
  order: 'blocks' | 'turn'
  /** What is not done by then is not waited for. */
  seconds: number
}

/** What to measure, whoever it is measured with. */
export type Kind =
  | (PushTask | DrainTask | WaitTask | BytesTask | BacklogTask | PinnedTask)
  | (CallsTask | PrefetchTask | GroupsTask)
export type Task = (Kind & { contender: ContenderName }) | (IdleTask & { contender: ContenderName | 'nothing' })
type Of<Some extends Task['measure']> = Extract<Task, { measure: Some }>
/** And where it finds its store. */
export type Placed = Task & { url: string }

/** One number per thing measured. */
export type Outcome = Record<string, number>
export type Measure<Some extends Task['measure']> = (task: Of<Some> & { url: string }) => Promise<Outcome>

export async function perform(task: Placed): Promise<Outcome> {
  switch (task.measure) {
    case 'push':
      return (await import('./measures/push.ts')).push(task)
    case 'drain':
      return (await import('./measures/drain.ts')).drain(task)
    case 'wait':
      return (await import('./measures/wait.ts')).wait(task)
    case 'idle':
      return (await import('./measures/idle.ts')).idle(task)
    case 'bytes':
      return (await import('./measures/bytes.ts')).bytes(task)
    case 'calls':
      return (await import('./measures/calls.ts')).calls(task)
    case 'backlog':
      return (await import('./measures/backlog.ts')).backlog(task)
    case 'pinned':
      return (await import('./measures/pinned.ts')).pinned(task)
    case 'prefetch':
      return (await import('./measures/prefetch.ts')).prefetch(task)
    case 'groups':
      return (await import('./measures/groups.ts')).groups(task)
  }
}
