/** What a worker, a pond and a server take on closing, and what the first two answer. */
import { type Duration, LONGEST_TIMER, milliseconds } from '../values/duration.ts'
import { checkOptions, isFunction, type Rules } from '../values/options.ts'

export interface CloseOptions {
  /** How long running handlers may go on; 30 s unless set. */
  timeout?: Duration
}

export interface PondCloseOptions extends CloseOptions {
  /**
   * Comes before anything is closed, while jobs still run and pushes are taken: the place to close the servers that use the pond. What it
   * takes is taken from `timeout`, and after that the pond closes whatever it does.
   */
  before?: () => unknown
}

const isTimeout = (value: unknown) => milliseconds(value, 'timeout', 0, LONGEST_TIMER) >= 0
const POND_RULES: Rules<PondCloseOptions> = { timeout: isTimeout, before: isFunction }

/** Milliseconds. @throws InvalidOption */
export function closeTimeout(options: CloseOptions): number {
  return milliseconds(checkOptions(options, { timeout: isTimeout }, 'close').timeout ?? '30s', 'timeout')
}

/** The options of a pond's close, checked. @throws InvalidOption */
export function pondCloseOptions(
  options: PondCloseOptions,
  where: string,
): { timeout: number; before?: () => unknown } {
  const { timeout, before } = checkOptions(options, POND_RULES, where)
  return { timeout: milliseconds(timeout ?? '30s', 'timeout'), ...(before === undefined ? {} : { before }) }
}

export interface CloseReport {
  /** Attempts that ran to their end while closing, and whose end the store knows. */
  finished: number
  /** Jobs given back, whether started or not; others will run them. */
  givenBack: number
}

/** Waits for the promise, but no longer than so many milliseconds. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
