/** What is measured; each kind is one file in `measures/`, and runs in a fresh process, on a server with nothing in it. */
import type { PushTask as BenchPush } from '../bench/measure.ts'
import type { ContenderName, Setting } from './contender.ts'
import type { GroupedName } from './grouped.ts'

export interface PushTask {
  measure: 'push'
  /** How: one awaited after the other; by 50 loops at once; 500 a call. */
  way: BenchPush['way']
  count: number
}
export interface DrainTask {
  measure: 'drain'
  count: number
  forget: boolean
}
export interface WaitTask {
  measure: 'wait'
  samples: number
}
export interface BytesTask {
  measure: 'bytes'
  count: number
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
export type Kind = PushTask | DrainTask | WaitTask | BytesTask | BacklogTask | PinnedTask

export type Task = (Kind & { contender: ContenderName }) | (GroupsTask & { contender: GroupedName })
/** And where it finds its server. */
export type Placed<Some extends Kind> = Some & { contender: ContenderName; url: string }
export type PlacedGroups = GroupsTask & { contender: GroupedName; url: string }
/** One number per thing measured. */
export type Outcome = Record<string, number>
export type Measure<Some extends Kind> = (task: Placed<Some>) => Promise<Outcome>

export async function perform(task: Placed<Kind> | PlacedGroups): Promise<Outcome> {
  switch (task.measure) {
    case 'push':
      return (await import('./measures/push.ts')).push(task)
    case 'drain':
      return (await import('./measures/drain.ts')).drain(task)
    case 'wait':
      return (await import('./measures/wait.ts')).wait(task)
    case 'bytes':
      return (await import('./measures/bytes.ts')).bytes(task)
    case 'backlog':
      return (await import('./measures/backlog.ts')).backlog(task)
    case 'pinned':
      return (await import('./measures/pinned.ts')).pinned(task)
    case 'groups':
      return (await import('./measures/groups.ts')).groups(task)
  }
}
