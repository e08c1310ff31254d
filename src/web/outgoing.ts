/** A Response sent through node:http, no faster than the client reads. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/**
 * Resolves when it is sent, or the client is gone. A body that fails midway cuts the connection, so that nobody takes a part for the whole.
 * @param stall milliseconds that a client may go without reading anything
 */
export async function send(response: Response, outgoing: ServerResponse, stall: number): Promise<void> {
  const { body } = response
  if (outgoing.destroyed || outgoing.headersSent) {
    await body?.cancel()
    return
  }
  outgoing.statusCode = response.status
  if (response.statusText !== '') outgoing.statusMessage = response.statusText
  for (const [name, value] of response.headers) outgoing.appendHeader(name, value)
  if (body === null || outgoing.req.method === 'HEAD') {
    outgoing.end()
    await body?.cancel()
    return
  }
  // A stream may have nothing to say for long, and the client should know that it was heard.
  const length = response.headers.get('content-length')
  if (length === null) outgoing.flushHeaders()
  const reader = body.getReader()
  const gone = () => void reader.cancel().catch(() => {})
  outgoing.once('close', gone)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (String(value.byteLength) === length) {
        // All of it at once: head and body go out in one write.
        outgoing.end(value)
        return
      }
      if (!outgoing.write(value)) await drained(outgoing, stall)
      if (outgoing.destroyed) return
    }
    outgoing.end()
  } catch (error) {
    outgoing.destroy()
    throw error
  } finally {
    outgoing.off('close', gone)
  }
}

async function drained(outgoing: ServerResponse, stall: number): Promise<void> {
  const over = new AbortController()
  const timer = setTimeout(() => outgoing.destroy(), stall)
  const { signal } = over
  try {
    await Promise.race([once(outgoing, 'drain', { signal }), once(outgoing, 'close', { signal })])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
