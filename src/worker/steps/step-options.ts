/** Checks of what handlers say of their steps. */

import { checkOptions, isDuration, isInteger, type Rules } from '../../values/options/options.ts'
import { type BackoffPolicy, backoffPolicy, DEFAULT_BACKOFF } from '../../values/settings/backoff.ts'
import { DEFAULTS } from '../../values/settings/contract-defaults.ts'
import { checkKey } from '../../values/settings/names.ts'
import { milliseconds } from '../../values/time/duration.ts'
import type { RunOptions, StepOptions, WaitOptions } from './step-context.ts'

const MAX_QUESTION = 10_000

const STEP_RULES: Rules<StepOptions> = {
  retry: isObject,
  timeout: isDuration(),
  transaction: (value) => typeof value === 'boolean' || 'true or false',
}
const RETRY_RULES: Rules<NonNullable<StepOptions['retry']>> = {
  attempts: isInteger(1, DEFAULTS.bounds.attempts.most),
  backoff: (value) => typeof value !== 'function' || 'no function: a policy',
}
const WAIT_RULES: Rules<WaitOptions> = {
  timeout: (value) => milliseconds(value, 'timeout') >= 0,
  ask: (value) =>
    (typeof value === 'string' && value !== '' && value.length <= MAX_QUESTION) || `1 to ${MAX_QUESTION} characters`,
  answer: isObject,
}
const RUN_RULES: Rules<RunOptions> = {
  priority: isInteger(0, 9),
  delay: (value) => milliseconds(value, 'delay') >= 0,
  group: (value) => checkKey(value, 'group') !== '',
  cost: isInteger(1, DEFAULTS.bounds.cost.most),
  attempts: isInteger(1, DEFAULTS.bounds.attempts.most),
  timeout: isDuration(),
}

function isObject(value: unknown): boolean | string {
  return (typeof value === 'object' && value !== null && !Array.isArray(value)) || 'an object'
}

/** @throws InvalidOption */
export function checkStepOptions(
  options: StepOptions | undefined,
  key: string,
): { attempts: number; policy: BackoffPolicy; timeout: number | undefined; transaction: boolean } {
  const { retry, timeout, transaction = false } = checkOptions(options, STEP_RULES, `step ${key}`)
  const { attempts = 1, backoff } = checkOptions(retry, RETRY_RULES, `retry of step ${key}`)
  return {
    attempts,
    transaction,
    policy: backoff === undefined ? DEFAULT_BACKOFF : backoffPolicy(backoff),
    timeout: timeout === undefined ? undefined : milliseconds(timeout, 'timeout', 1),
  }
}

/** @throws InvalidOption */
export const checkWaitOptions = (options: WaitOptions | undefined, key: string): WaitOptions =>
  checkOptions(options, WAIT_RULES, `wait ${key}`)

/** @throws InvalidOption, InvalidName */
export const checkRunOptions = (options: RunOptions | undefined, key: string): RunOptions =>
  checkOptions(options, RUN_RULES, `run ${key}`)
