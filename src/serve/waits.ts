import { copyClient } from '../web/client.ts'
import { preferredWait, prefersEvents } from '../web/headers.ts'

/** Whether the request asks to wait, or for a stream. */
export function asksToWait(request: Request): boolean {
  return preferredWait(request) !== undefined || prefersEvents(request)
}

/** The same request, without its body, whose signal is also aborted by the other one: an answer that waits then comes at once. */
export function stoppedBy(request: Request, stopping: AbortSignal): Request {
  const { url, method, headers } = request
  const made = new Request(url, { method, headers, signal: AbortSignal.any([request.signal, stopping]) })
  copyClient(request, made)
  return made
}
