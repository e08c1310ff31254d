/** `millpond/testing`: a pond whose clock a test moves, and handlers called without a pond. For node:test, vitest, jest and others. */
import '../values/runtime/runtime.ts'

export type { TestParent } from './parents.ts'
export type { PushedJob } from './pushes.ts'
export { type RunBatchHandlerOptions, runBatchHandler } from './run-batch-handler.ts'
export { type RunHandlerOptions, runHandler } from './run-handler.ts'
export {
  type CrashedJob,
  type DrainOptions,
  openTestPond,
  type Ran,
  TestPond,
  type TestPondOptions,
} from './test-pond.ts'
export type { TestStep, TestWait } from './test-steps.ts'
export type { HandlerReport, TestJobOptions } from './trial.ts'
