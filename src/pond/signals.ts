/**
 * SIGTERM and SIGINT, for all ponds of the process that were opened with `signals`.
 *
 * The first signal closes them and ends the process. First every pond's `before` is called, because the servers of one may need the others;
 * then the ponds drain. The exit code is 0, or 1 if something failed. A second signal, more than a second later, ends the process at once.
 */

import type { PondCloseOptions } from '../values/options/close-options.ts'
import { isError } from '../values/runtime/realms.ts'
import { onStopSignal } from '../values/runtime/stop-signals.ts'

export interface Closable {
  close(options: PondCloseOptions): Promise<unknown>
}

const ponds = new Map<Closable, PondCloseOptions>()
let unlisten = () => {}

/** @returns a function that removes the pond */
export function closeOnSignals(pond: Closable, options: PondCloseOptions): () => void {
  if (ponds.size === 0) unlisten = onStopSignal(closeAll)
  ponds.set(pond, options)
  return () => {
    if (ponds.delete(pond) && ponds.size === 0) unlisten()
  }
}

function closeAll(): void {
  const closing = [...ponds]
  ponds.clear()
  const first = Promise.all(closing.map(async ([, { before }]) => before?.()))
  const closed = closing.map(([pond, options]) => pond.close({ ...options, before: () => first }))
  void Promise.allSettled([first, ...closed]).then((ends) => {
    const reasons = new Set(ends.flatMap((end): unknown[] => (end.status === 'rejected' ? [end.reason] : [])))
    for (const reason of reasons) process.emitWarning(isError(reason) ? reason : String(reason))
    // A warning is written in the next tick.
    setImmediate(() => process.exit(reasons.size > 0 ? 1 : undefined))
  })
}
