/** Calls a handler once, without a pond. */

import type { TransactionQuery } from '../store.ts'
import { checkFunction, checkOptions, isFunction, type Rules } from '../values/options/options.ts'
import type { Outcome } from '../worker/outcome.ts'
import { type Handler, singleRunner } from '../worker/single-runner.ts'
import { type HandlerReport, JOB_RULES, type TestJobOptions, TRIAL_RULES, Trial, type TrialOptions } from './trial.ts'

/** What the handler's job and context show. */
export interface RunHandlerOptions extends TestJobOptions, TrialOptions {
  /** Stands for `ctx.replica`. */
  replica?: TransactionQuery | undefined
}

const RULES: Rules<RunHandlerOptions> = { ...JOB_RULES, ...TRIAL_RULES, replica: isFunction }

/**
 * Calls the handler with a job of this data and a context. The data and the result are encoded and decoded, as through a store.
 * @returns how the attempt ends; what the handler throws is in the report
 * @throws InvalidOption, InvalidName, PayloadNotEncodable, PayloadTooLarge (of the data)
 */
export async function runHandler<Data, Result>(
  handler: Handler<Data, Result>,
  data: NoInfer<Data>,
  options: RunHandlerOptions = {},
): Promise<HandlerReport<Exclude<Awaited<Result>, Outcome>>> {
  checkFunction(handler, 'runHandler takes a function as handler')
  const checked = checkOptions(options, RULES, 'runHandler')
  const trial = new Trial([{ data, options: checked }], checked, checked.replica)
  // The runner knows no types of payloads.
  const run = singleRunner(trial.tools, handler as Handler)
  const [report] = await trial.run(() => {
    for (const attempt of trial.attempts) run(attempt)
  })
  return report as HandlerReport<Exclude<Awaited<Result>, Outcome>>
}
