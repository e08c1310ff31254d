/**
 * What the two threads say to each other. The main thread posts lists of requests; the thread posts what became of them,
 * many at once, with the bells that they rang.
 */
import type {
  Bell,
  ClaimRequest,
  Completion,
  ExtendOutcome,
  Extension,
  FailOutcome,
  Failure,
  FinalState,
  HistogramSlice,
  HoldOutcome,
  JobRecord,
  ListRequest,
  PushOutcome,
  QueueSettings,
  QueueStats,
  Swept,
} from '../../store.ts'
import type { WireError } from './errors.ts'
import type { PackedClaim, PackedCompletions, PackedJobs } from './flat.ts'
import type { Row, Value } from './values.ts'

/** Outcomes other than `pushed`, by index: there are seldom any. */
export type NotPushed = { at: number; outcome: PushOutcome }[]
/** Indexes of the stale ones, of which there are seldom any. */
export type Stale = number[]

export interface Operations {
  configure: { input: QueueSettings; output: null }
  push: { input: PackedJobs; output: NotPushed }
  claim: { input: ClaimRequest; output: PackedClaim }
  complete: { input: { queue: string; packed: PackedCompletions }; output: Stale | null }
  fail: { input: { queue: string; failures: readonly Failure[] }; output: FailOutcome[] }
  release: { input: { queue: string; flat: Value[] }; output: Stale }
  extend: { input: { queue: string; lease: number | null; extensions: readonly Extension[] }; output: ExtendOutcome[] }
  cancel: { input: readonly string[]; output: (FinalState | null)[] }
  sweep: { input: number; output: Swept }
  find: { input: readonly string[]; output: (JobRecord | null)[] }
  stats: { input: { queue?: string; minutes?: number }; output: QueueStats[] }
  record: { input: readonly HistogramSlice[]; output: null }
  list: { input: ListRequest; output: JobRecord[] }
  requeue: { input: { ids: readonly string[] } | { queue: string; limit: number }; output: number }

  /** `transaction`: its number, counted by the main thread. The first one of a transaction begins it. */
  query: { input: { transaction: number; text: string; params: Value[] }; output: Row[] }
  pushWithin: { input: { transaction: number; flat: Value[] }; output: NotPushed }
  commitWith: { input: { transaction: number; queue: string; completion: Completion }; output: HoldOutcome }
  rollback: { input: { transaction: number }; output: null }

  /** Whether anyone wants bells. */
  listen: { input: boolean; output: null }
  close: { input: null; output: null }
}

export type Operation = keyof Operations
export type Input<O extends Operation> = Operations[O]['input']
export type Output<O extends Operation> = Operations[O]['output']

/** `now`: the time to act on where tests have a clock of their own, else null. */
export interface RequestOf<O extends Operation> {
  seq: number
  op: O
  input: Input<O>
  now: number | null
}
export type Request = { [O in Operation]: RequestOf<O> }[Operation]

/** Those of handlers' transactions. */
export type TransactionOperation = 'query' | 'pushWithin' | 'commitWith' | 'rollback'
export type TransactionRequest = { [O in TransactionOperation]: RequestOf<O> }[TransactionOperation]

/** Those on the jobs. */
export type JobOperation = Exclude<Operation, TransactionOperation | 'listen' | 'close'>
export type JobRequest = { [O in JobOperation]: RequestOf<O> }[JobOperation]

export type Answer = { seq: number; output: unknown } | { seq: number; error: WireError }

/** The first message is `opened` or `failed`. */
export type ThreadMessage =
  | { kind: 'opened' }
  | { kind: 'failed'; error: WireError }
  | { kind: 'answers'; answers: Answer[]; bells: Bell[] }
