/** What a worker, a pond and an endpoint are told on closing, and what the first two tell afterwards. */
import { type Duration, LONGEST_TIMER, milliseconds } from './duration.ts'
import { checkOptions } from './options.ts'

export interface CloseOptions {
  /** How long running handlers may go on; 30 s unless set. */
  timeout?: Duration
}

/** Milliseconds. @throws InvalidOption */
export function closeTimeout(options: CloseOptions): number {
  const rules = { timeout: (value: unknown) => milliseconds(value, 'timeout', 0, LONGEST_TIMER) >= 0 }
  return milliseconds(checkOptions(options, rules, 'close').timeout ?? '30s', 'timeout')
}

export interface CloseReport {
  /** Attempts that ran to their end while closing, and whose end the store knows. */
  finished: number
  /** Jobs given back, whether started or not; others will run them. */
  givenBack: number
}
