/** Reports errors that reach no caller. */

import type { MillpondError } from '../values/errors/errors.ts'
import { errorSummary } from '../values/errors/safe-error.ts'
import { inThisContext } from '../values/runtime/async-context.ts'

export type OnError = (error: MillpondError, key: string) => void

/** Milliseconds between warnings of the process: a server that is gone fails every call. */
const WARNING_INTERVAL = 60_000

/** @returns reports to `onError`; unless that is given, as a warning of the process, at most once a minute */
export function errorReporter(given: OnError | undefined): OnError {
  const onError = given && inThisContext(given)
  let warnedAt = Number.NEGATIVE_INFINITY
  const warn: OnError = ({ code, message }, key) => {
    const now = performance.now()
    if (now - warnedAt < WARNING_INTERVAL) return
    warnedAt = now
    const text = `cache, key ${JSON.stringify(key)}: ${code}: ${message} (give onError to see all)`
    process.emitWarning(text, { type: 'MillpondWarning' })
  }
  return (error, key) => {
    try {
      ;(onError ?? warn)(error, key)
    } catch (broken) {
      // A broken hook must not become the error of the call that met it.
      process.emitWarning(`onError of the cache threw ${errorSummary(broken)}`, { type: 'MillpondWarning' })
    }
  }
}
