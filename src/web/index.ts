/** `millpond/web`: HTTP handlers that push jobs, follow them, tell metrics, and share answers. */
import '../values/runtime/runtime.ts'

export { type AcceptOptions, accept } from './accept.ts'
export type { CoalescedResponses, CoalesceResponsesOptions, ResponseKey } from './coalesce.ts'
export { coalesceResponses } from './coalesce.ts'
export { type FollowOptions, follow } from './follow.ts'
export type { IdempotencyOptions } from './idempotency.ts'
export type { JobView } from './job-view.ts'
export { type MetricsOptions, metrics } from './metrics.ts'
export { type OnError, type Problem, problem } from './problem.ts'
