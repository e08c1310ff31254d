/** Calls a handler for batches once, without a pond. */

import { MillpondError } from '../values/errors/errors.ts'
import { checkFunction, checkOptions, defined, isFunction, type Rules } from '../values/options/options.ts'
import { kindOf } from '../values/time/duration.ts'
import { Batch } from '../worker/batch.ts'
import type { BatchHandler } from '../worker/batch-context.ts'
import { batchRunner } from '../worker/batch-runner.ts'
import { type HandlerReport, JOB_RULES, type TestJobOptions, TRIAL_RULES, Trial, type TrialOptions } from './trial.ts'

/** What the jobs of the batch and their contexts show. */
export interface RunBatchHandlerOptions<Data = unknown> extends Omit<TestJobOptions, 'id' | 'key'>, TrialOptions {
  /** Called for each job; returns options that override the common ones. */
  each?: ((data: Data, index: number) => TestJobOptions | undefined) | undefined
}

// One id or key for all is none.
const { id: _id, key: _key, ...COMMON_RULES } = JOB_RULES
const RULES: Rules<RunBatchHandlerOptions<never>> = { ...COMMON_RULES, ...TRIAL_RULES, each: isFunction }

/**
 * Calls the handler once with a job for each of these data, and a context. The data and the results are encoded and decoded, as through a
 * store.
 * @returns how each attempt ends, in the order of the data; what the handler throws is in the reports
 * @throws InvalidOption, InvalidName, PayloadNotEncodable, PayloadTooLarge (of the data)
 */
export async function runBatchHandler<Data>(
  handler: BatchHandler<Data>,
  data: readonly NoInfer<Data>[],
  options: RunBatchHandlerOptions<Data> = {},
): Promise<HandlerReport[]> {
  checkFunction(handler, 'runBatchHandler takes a function as handler')
  if (!Array.isArray(data) || data.length === 0) {
    const got = Array.isArray(data) ? 'an empty one' : kindOf(data)
    throw new MillpondError('InvalidOption', `runBatchHandler takes an array of data for its jobs; got ${got}`)
  }
  const { each: _each, ...common } = checkOptions(options, RULES, 'runBatchHandler')
  const jobs = data.map((one: Data, index) => {
    const own = checkOptions(options.each?.(one, index), JOB_RULES, `runBatchHandler: the options of job ${index}`)
    return { data: one, options: { ...common, ...defined(own) } }
  })
  const trial = new Trial(jobs, common)
  const ids = new Set(trial.attempts.map(({ claimed }) => claimed.id))
  if (ids.size < jobs.length) throw new MillpondError('InvalidOption', 'runBatchHandler: two jobs have the same id')
  const batch = new Batch(trial.attempts, () => {})
  for (const attempt of trial.attempts) attempt.batch = batch
  // The runner knows no types of payloads.
  const run = batchRunner(trial.tools, handler as BatchHandler)
  return trial.run(() => void run(batch))
}
