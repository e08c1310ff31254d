/** The options of closing a worker, a pond or a service, and the reports of the first two. */
import { DEFAULTS } from '../settings/contract-defaults.ts'
import { type Duration, milliseconds } from '../time/duration.ts'
import { checkOptions, isDuration, isFunction, type Rules } from './options.ts'

export interface CloseOptions {
  /** How long running handlers may go on; 0 to 24 days, 30 s unless set. Then their signal is aborted and their jobs are given back. */
  timeout?: Duration | undefined
}

export interface PondCloseOptions extends CloseOptions {
  /**
   * Called before anything is closed, while jobs still run and pushes are accepted: here, close the servers that use the pond. A promise is
   * awaited, but no longer than `timeout`; its time is deducted from `timeout`. If it fails, the pond closes all the same.
   */
  before?: (() => unknown) | undefined
}

const POND_RULES: Rules<PondCloseOptions> = { timeout: isDuration(0), before: isFunction }

/** Milliseconds. @throws InvalidOption */
export function closeTimeout(options: CloseOptions): number {
  return milliseconds(
    checkOptions(options, { timeout: isDuration(0) }, 'close').timeout ?? DEFAULTS.worker.close,
    'timeout',
  )
}

/** The options of a pond's close, checked. @throws InvalidOption */
export function pondCloseOptions(
  options: PondCloseOptions,
  where: string,
): { timeout: number; before?: () => unknown } {
  const { timeout, before } = checkOptions(options, POND_RULES, where)
  return {
    timeout: milliseconds(timeout ?? DEFAULTS.worker.close, 'timeout'),
    ...(before === undefined ? {} : { before }),
  }
}

export interface CloseReport {
  /** Attempts that ended while closing, and whose ending the store has. */
  finished: number
  /** Jobs given back, started or not. They wait again, for other workers. */
  givenBack: number
  /** Claims whose endings the store has not taken in time; left out if there is none. Their jobs may run again after their leases. */
  untold?: number
}
