/** What the explorer needs of a store. */

import type { Store } from '../../src/store.ts'
import type { Calls, Operation } from './operations.ts'
import type { Path } from './orders.ts'
import type { World } from './world.ts'

/** A session's operations, one after the other; or none, and `row`. */
export interface Script {
  readonly operations: readonly Operation[]
  /** Where its first call stops until it is told to go on; see `postgres/stops.ts`. */
  readonly stop?: Stop | undefined
  /** The session is a helper that holds the row of a running job from before the race, until it is told to go on. */
  readonly row?: boolean
  /** The session is an application's transaction that holds something from before the race, until it is told to go on. */
  readonly stranger?: StrangerHolds
}

export const STRANGERS = ['key', 'keys', 'room', 'replaced', 'followed', 'parent', 'completion', 'schedule'] as const
export type StrangerHolds = (typeof STRANGERS)[number]

export interface Stop {
  /** Such as `update groups`. */
  statement: string
  /** `before`: the statement has its view of the data and has touched nothing. `after`: it has written, and the next one has not begun. */
  when: 'before' | 'after'
}

export interface Arena {
  /** Ms after which the store takes a process that sleeps for gone, unless it has asked again. */
  readonly forgets: number
  /** For what is not raced, and for the checks. Its clock is `clock` of `world.ts`. */
  readonly store: Store
  readonly calls: Calls
  /** How many bells of work for the queue the process that sleeps has heard. */
  told(queue: string): Promise<number>
  /** Waits for one more, for as long as it may be on its way. */
  toldSoon(queue: string, before: number): Promise<boolean>
  /** What a claim would take now. A store that cannot undo a claim holds them for the world. @returns their groups */
  probe(world: World): Promise<(string | null)[]>
  /** How many jobs there are in each state, counted one by one. */
  rows(queue: string): Promise<Map<string, number>>
  /** Whether rows can be held, and transactions of strangers can be open. */
  readonly holdsRows: boolean
  /** Statements where a call of that kind may stop. */
  stops(kind: string): readonly string[]
  /** Lets the sessions race, and takes their effects over into the world. @returns false: the path could not be followed */
  race(world: World, scripts: readonly Script[], path: Path): Promise<boolean>
  /** What is wrong inside the store. `idle`: nothing waits or runs any more. */
  inside(world: World, idle: boolean): Promise<string[]>
  close(): Promise<void>
}
