/** The public API, and nothing else. */
import './runtime.ts'

export type { Backoff, BackoffFunction, BackoffOptions } from './backoff.ts'
export {
  type BatchCallOptions,
  type Batched,
  type BatchFunction,
  type BatchOptions,
  type BatchStats,
  batch,
} from './batch.ts'
export type { CloseOptions, CloseReport, PondCloseOptions } from './close-options.ts'
export {
  type CoalesceCallOptions,
  type Coalesced,
  type CoalesceFunction,
  type CoalesceOptions,
  type CoalesceStats,
  coalesce,
  type FlightContext,
} from './coalesce.ts'
export type { Context } from './context.ts'
export type { Duration } from './duration.ts'
export { type ErrorCode, isMillpondError, MillpondError } from './errors.ts'
export type { AttemptEvent, JobEvent, PondEvents, Timings } from './events.ts'
export type { Job, JobInfo, JobPart } from './job.ts'
export { Millpond, type OpenOptions, type PondCloseReport } from './millpond.ts'
export { Outcome } from './outcome.ts'
export type { Pushed, PushManyOptions, PushOptions } from './push.ts'
export type { Queue, QueueOptions, WorkOptions } from './queue.ts'
export type { Handler } from './runner.ts'
export type { StandardSchema } from './schema.ts'
export type { Percentiles, QueueReport } from './stats.ts'
export type {
  Capabilities,
  FinalState,
  JobError,
  JobState,
  LiveState,
  ReplicaQuery,
  TransactionQuery,
} from './store.ts'
export type { Worker } from './worker.ts'
