/** Repeats what a store could not do for the moment. All calls of a move may be repeated: each knows jobs by their ids. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../store.ts'
import { around } from '../stores/around.ts'
import { isMillpondError, type MillpondError } from '../values/errors/errors.ts'

/** In ms: without any success for so long, the move ends with the error. */
const PATIENCE = 60_000
const FIRST_WAIT = 50
const LONGEST_WAIT = 2000

const isPassing = (error: unknown): error is MillpondError =>
  isMillpondError(error, 'StoreUnavailable') || isMillpondError(error, 'StoreBusy')

/** @param onTrouble is told of each failure that is repeated @param stop ends the waiting with the error */
export async function retried<T>(
  call: () => Promise<T>,
  onTrouble: (error: MillpondError) => void,
  stop: AbortSignal,
): Promise<T> {
  const until = performance.now() + PATIENCE
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      return await call()
    } catch (error) {
      if (!isPassing(error) || performance.now() + wait > until || stop.aborted) throw error
      onTrouble(error)
      await sleep(wait, undefined, { signal: stop }).catch(() => {})
    }
  }
}

/** The store with each of its operations repeated. */
export function retrying(store: Store, onTrouble: (error: MillpondError) => void, stop: AbortSignal): Store {
  return around(store, (_name, input, next) => retried(() => next(input), onTrouble, stop))
}
