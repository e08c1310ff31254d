/**
 * What the two threads say to each other. The main thread posts lists of requests; the thread posts lists of answers, with
 * the bells that its commits rang.
 */
import type { Bell } from '../../../store.ts'
import type { WireError } from '../errors.ts'
import type { StoreContext } from '../queues.ts'
import type { Settings } from '../settings.ts'
import type { ThreadOperations } from './thread-operations.ts'
import type { Row, Value } from './values.ts'

/** What the thread does beside the operations. */
interface Controls {
  /** The first request. */
  open(context: StoreContext, input: Settings): null
  /** Both of the handler's transaction that the request names. */
  query(context: StoreContext, input: { text: string; params: Value[] }): Row[]
  rollback(context: StoreContext, input: null): null
  /** Whether anyone wants bells. */
  listen(context: StoreContext, input: boolean): null
  /** @returns whether the thread ends */
  close(context: StoreContext, input: null): boolean
}

type Calls = ThreadOperations & Controls
export type Call = keyof Calls
export type Operation = keyof ThreadOperations
export type Inputs = { [C in Call]: Parameters<Calls[C]>[1] }
export type Outputs = { [C in Call]: ReturnType<Calls[C]> }

export type RequestOf<C extends Call> = {
  [K in C]: {
    seq: number
    op: K
    input: Inputs[K]
    /** The time to act on where tests have a clock of their own, else null. */
    now: number | null
    /** The handler's transaction that it belongs to, counted by the main thread. The first request of one begins it. */
    transaction?: number | undefined
  }
}[C]
export type Request = RequestOf<Call>

export type Answer = { seq: number; output: unknown } | { seq: number; error: WireError }

export interface Answers {
  answers: Answer[]
  bells: Bell[]
}
