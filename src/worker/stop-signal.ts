import type { MillpondError } from '../values/errors/errors.ts'
import { inThisContext } from '../values/runtime/async-context.ts'

/** An attempt or a batch. */
export interface Stoppable {
  whenStopped(listener: (reason: MillpondError) => void): void
}

/** Aborted when it is stopped. Listeners run in the handler's asynchronous context, not in that of a caller who cancels a job. */
export function signalOf(run: Stoppable): AbortSignal {
  const controller = new AbortController()
  run.whenStopped(inThisContext((reason: MillpondError) => controller.abort(reason)))
  return controller.signal
}
