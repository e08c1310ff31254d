/**
 * What tracing listens to: the channels `millpond:push` and `millpond:run` of `node:diagnostics_channel`. A subscriber is
 * called at once, and sets on the message what it wants to be told. Without one, each call costs a look at a boolean.
 */
import { channel } from 'node:diagnostics_channel'

export const pushCalls = channel('millpond:push')
export const runCalls = channel('millpond:run')

/** A call of `push` or `pushMany`, before anything is checked. */
export interface PushCall {
  readonly queue: string
  /** How many jobs. */
  readonly count: number
  /** What the call gives as the option `trace`. A subscriber may change it. */
  trace: string | undefined
  /**
   * Called when the store has answered. Unset unless a subscriber sets it.
   * @param code of the error; null: it succeeded
   * @param ids of the jobs, if it succeeded
   */
  ended: ((code: string | null, ids: readonly string[]) => void) | undefined
}

/** A job that a handler is given. */
export interface RunJob {
  readonly id: string
  /** From 1. */
  readonly attempt: number
  readonly trace: string | null
  /** Milliseconds from due to started. */
  readonly wait: number
}

/** A call of a handler. */
export interface RunCall {
  readonly queue: string
  /** Whether it is a handler for batches. */
  readonly isBatch: boolean
  readonly jobs: readonly RunJob[]
  /** Calls the handler, in the asynchronous context that the subscriber likes. Unset unless a subscriber sets it. */
  around: (<Out>(run: () => Out) => Out) | undefined
  /**
   * Called when the handler has answered, or nothing that it answers counts any more; perhaps twice. Unset unless a subscriber sets it.
   * @param code of the error; null: it succeeded
   */
  ended: ((code: string | null) => void) | undefined
}
