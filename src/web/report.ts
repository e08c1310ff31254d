import { sketch } from '../values/safe-error.ts'

/** Called with errors of the service that the client is not told. `request`: undefined if the error belongs to no request, or none could be parsed. */
export type OnError = (error: unknown, request: Request | undefined) => void

/** @param onError unset: the first error is a process warning with its class and place; not its message, which may hold a payload */
export function reporter(onError: OnError | undefined): OnError {
  let warned = false
  return (error, request) => {
    try {
      if (onError !== undefined) {
        onError(error, request)
        return
      }
    } catch (broken) {
      // The answer is on its way; a broken hook must neither change it nor end the process.
      warn(broken)
    }
    if (!warned) warn(error)
    warned = true
  }
}

function warn(error: unknown): void {
  const text = sketch(error)
  process.emitWarning(`${text} (further ones are not shown; give onError to see all)`, { type: 'MillpondWarning' })
}
