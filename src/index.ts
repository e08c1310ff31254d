/** The public API, and nothing else. */
import './values/runtime/runtime.ts'

export {
  type BatchCallOptions,
  type Batched,
  type BatchFunction,
  type BatchOptions,
  type BatchStats,
  batch,
} from './batch/index.ts'
export {
  type CoalesceCallOptions,
  type Coalesced,
  type CoalesceFunction,
  type CoalesceOptions,
  type CoalesceStats,
  coalesce,
  type FlightContext,
} from './coalesce/index.ts'
export type { BulkPreview, BulkReport } from './pond/bulk.ts'
export type {
  BulkOptions,
  BulkProgress,
  CancelFilter,
  DryRunOptions,
  RemoveFilter,
  RequeueFilter,
  UpdateAllOptions,
  UpdateFilter,
} from './pond/bulk-options.ts'
export type { Explanation, WaitReason } from './pond/explain.ts'
export type { Graph, GraphNode, GraphOptions } from './pond/graph.ts'
export type { ResultOptions } from './pond/internals.ts'
export type { IsolateOptions } from './pond/isolate-options.ts'
export type { SignalTarget } from './pond/job-steps.ts'
export type { GroupLimitOptions, LimitOptions, QueueLimitOptions, QueueLimits } from './pond/limits.ts'
export type { FilterOptions, JobsOptions, PageOptions } from './pond/listing.ts'
export { Millpond, type PondCloseReport } from './pond/millpond.ts'
export type {
  CommonOptions,
  MemoryOptions,
  OpenOptions,
  PostgresOptions,
  RabbitmqOptions,
  RedisOptions,
  SpillOptions,
  SqliteOptions,
} from './pond/open-options.ts'
export {
  type Measured,
  type Plan,
  type PlanFormula,
  type PlanOptions,
  type PlanTargets,
  plan,
  type QueuePlan,
  type QueuePlanOptions,
} from './pond/plan.ts'
export type { Callback, PushedWithCallback } from './pond/push/callback.ts'
export type { OnceOptions } from './pond/push/once.ts'
export type { Pushed, PushManyOptions, PushOptions } from './pond/push/options.ts'
export type { GraphJob, GraphJobOptions, PushAllOptions } from './pond/push/push-all.ts'
export type { Queue } from './pond/queue.ts'
export type { OverrideOptions, QueueOptions, QueueSetting } from './pond/queue-options.ts'
export type { ScheduleOptions } from './pond/schedule-options.ts'
export type { Preview, PreviewOptions } from './pond/schedule-preview.ts'
export type { ScheduleInfo, Schedules } from './pond/schedules.ts'
export type { Percentiles, QueueReport, StatsOptions } from './pond/stats.ts'
export type { UpdateOptions } from './pond/update.ts'
export type { BatchJobOptions, BatchWorkOptions, IsolatedWorkOptions, WorkOptions } from './pond/work-options.ts'
export type { WorkerInfo } from './pond/worker-info.ts'
export type { Capabilities, ReplicaQuery, TransactionQuery } from './store.ts'
export type { StandardSchema } from './values/encoding/schema.ts'
export type { SealKey, SealOptions } from './values/encoding/seal.ts'
export type { Stored } from './values/encoding/stored.ts'
export { type ErrorCode, isMillpondError, MillpondError } from './values/errors/errors.ts'
export type { ActionEvent, AttemptEvent, JobEvent, PondEvents, Timings } from './values/jobs/events.ts'
export type { Job, JobInfo, JobPart, ListedJob } from './values/jobs/job.ts'
export type { LogLine } from './values/jobs/job-log.ts'
export type { ParentJob } from './values/jobs/parent-jobs.ts'
export type { FinalState, JobError, JobState, LiveState, OnDead } from './values/jobs/records.ts'
export type { StepInfo, StepWait } from './values/jobs/step-info.ts'
export type { Lane, Totals } from './values/operations/requests.ts'
export type { StoreOperation } from './values/operations/store-operation.ts'
export type { CloseOptions, CloseReport, PondCloseOptions } from './values/options/close-options.ts'
export type { Backoff, BackoffFunction, BackoffOptions } from './values/settings/backoff.ts'
export type { GroupLimits, GroupRecord as GroupInfo, Rate } from './values/settings/limits.ts'
export type { RateOption, RateOptions } from './values/settings/rate.ts'
export type { SettingName } from './values/settings/settings.ts'
export type { Duration } from './values/time/duration.ts'
export type { BatchAnswer, BatchContext, BatchHandler } from './worker/batch-context.ts'
export type { Context } from './worker/context.ts'
export { Outcome } from './worker/outcome.ts'
export type { Handler } from './worker/single-runner.ts'
export type { ChildQueue, RunOptions, StepOptions, Steps, WaitOptions } from './worker/steps/step-context.ts'
export type { Worker } from './worker/worker.ts'
