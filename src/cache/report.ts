/** Who is told of what goes wrong where no caller can be. */
import type { MillpondError } from '../values/errors.ts'
import { errorSummary } from '../values/safe-error.ts'

export type OnError = (error: MillpondError, key: string) => void

/** Milliseconds between warnings of the process: a server that is gone fails every call. */
const WARNING_INTERVAL = 60_000

/** @param onError unless given, a warning of the process, at most once a minute */
export function reporter(onError: OnError | undefined): OnError {
  let warnedAt = Number.NEGATIVE_INFINITY
  const warn = (text: string) => {
    const now = performance.now()
    if (now - warnedAt < WARNING_INTERVAL) return
    warnedAt = now
    process.emitWarning(`${text} (give onError to see all)`, { type: 'MillpondWarning' })
  }
  return (error, key) => {
    if (onError === undefined) {
      warn(`cache, key ${JSON.stringify(key)}: ${error.code}: ${error.message}`)
      return
    }
    try {
      onError(error, key)
    } catch (broken) {
      // A broken hook must not become an error of whoever happened to ask.
      warn(`onError of the cache threw ${errorSummary(broken)}`)
    }
  }
}
