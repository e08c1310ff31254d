import type { IdleQueues } from '../../idle.ts'
import type { Statements } from '../connection/statements.ts'
import type { Queues } from '../queues.ts'

/** What an operation works on: one connection, in one transaction. */
export interface Context {
  statements: Statements
  queues: Queues
  idle: IdleQueues
  /** Fences are given out above it. */
  fenceFloor: number
  /** The time to act on. */
  now: number
}
