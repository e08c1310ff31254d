/** A Response sent through node:http, no faster than the client reads. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/** Bytes that a connection is given at once. A client has `stall` for each, so this is also how much it must read in that time. */
const CHUNK_BYTES = 64 * 1024

/**
 * Resolves when the system has all of it to send, or the client is gone. A body that fails midway cuts the connection, so that nobody takes a
 * part for the whole.
 * @param stall milliseconds that a client may take to read 64 KiB; then it is cut off
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
  } else await sendBody(body, response.headers.get('content-length'), outgoing, stall)
  // Also what was written last must be read, or the connection would be held, with the answer, for as long as the client likes.
  if (outgoing.writableLength > 0) await clientReads(outgoing, 'finish', stall)
}

async function sendBody(
  body: ReadableStream<Uint8Array>,
  length: string | null,
  outgoing: ServerResponse,
  stall: number,
): Promise<void> {
  // A stream may have nothing to say for long, and the client should know that it was heard.
  if (length === null) outgoing.flushHeaders()
  const reader = body.getReader()
  const gone = () => void reader.cancel().catch(() => {})
  outgoing.once('close', gone)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (value.byteLength <= CHUNK_BYTES && String(value.byteLength) === length) {
        // All of it at once: head and body go out in one write.
        outgoing.end(value)
        return
      }
      for (let from = 0; from < value.byteLength; from += CHUNK_BYTES) {
        if (!outgoing.write(value.subarray(from, from + CHUNK_BYTES))) await clientReads(outgoing, 'drain', stall)
        if (outgoing.destroyed) return
      }
    }
    outgoing.end()
  } catch (error) {
    outgoing.destroy()
    throw error
  } finally {
    outgoing.off('close', gone)
  }
}

/** Resolves when the client has read enough for the event to come, or its connection is cut. */
async function clientReads(outgoing: ServerResponse, event: 'drain' | 'finish', stall: number): Promise<void> {
  const over = new AbortController()
  const timer = setTimeout(() => outgoing.destroy(), stall)
  const { signal } = over
  try {
    await Promise.race([once(outgoing, event, { signal }), once(outgoing, 'close', { signal })])
  } finally {
    clearTimeout(timer)
    over.abort()
  }
}
