/** Calls of the durable store that must not be given up at the first error. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isMillpondError, type MillpondError, storeError } from '../../values/errors/errors.ts'

/** Milliseconds; each wait is twice as long as the one before. */
const FIRST_WAIT = 50
const LONGEST_WAIT = 2_000

/**
 * Repeats the call until it succeeds. The call must be one that can be repeated.
 * @param goesOn asked after each failure with the milliseconds since the first call; false: the last error is thrown
 */
export async function persistent<T>(what: string, call: () => Promise<T>, goesOn: (ms: number) => boolean): Promise<T> {
  const began = performance.now()
  for (let wait = FIRST_WAIT; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    try {
      return await call()
    } catch (cause) {
      const error: MillpondError = storeError(cause, what)
      const isHopeless = !error.retryable || isMillpondError(error, 'Closed')
      if (isHopeless || !goesOn(performance.now() - began)) throw error
      await sleep(wait)
    }
  }
}
