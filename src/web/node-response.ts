/** A Response sent through node:http or node:http2, no faster than the client reads. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

/** Bytes written at once. A client must read as many within `stall`. */
const CHUNK_BYTES = 64 * 1024

/**
 * Resolves when the system has all of it to send, or the client is gone. If a body fails midway, the connection is cut, so that no client
 * takes a part for the whole.
 * @param stall milliseconds that a client may take to read CHUNK_BYTES; then its connection is cut
 */
export async function send(response: Response, outgoing: ServerResponse, stall: number): Promise<void> {
  const { body } = response
  if (isCut(outgoing) || outgoing.headersSent) {
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
  // A client must also read the last chunk in time, or it could hold the connection and the answer for as long as it likes.
  if (outgoing.writableLength > 0) await clientReads(outgoing, 'finish', stall)
}

/** Whether nothing more can be sent, because the client or its connection is gone. */
export function isCut(outgoing: ServerResponse): boolean {
  return outgoing.destroyed || streamOf(outgoing)?.destroyed === true
}

/**
 * Whether the whole answer was sent. Ask when the response is closed. After a reset of an HTTP/2 stream, `writableFinished` is true even
 * if the answer never began.
 */
export function wasSent(outgoing: ServerResponse): boolean {
  return outgoing.writableEnded && outgoing.writableFinished && !streamOf(outgoing)?.rstCode
}

/** Of HTTP/2, whose responses have no `destroyed`. */
function streamOf(outgoing: ServerResponse): { destroyed: boolean; rstCode: number } | undefined {
  const stream: unknown = 'stream' in outgoing ? outgoing.stream : undefined
  if (typeof stream !== 'object' || stream === null || !('destroyed' in stream)) return undefined
  const rstCode = 'rstCode' in stream && typeof stream.rstCode === 'number' ? stream.rstCode : 0
  return { destroyed: stream.destroyed === true, rstCode }
}

async function sendBody(
  body: ReadableStream<Uint8Array>,
  length: string | null,
  outgoing: ServerResponse,
  stall: number,
): Promise<void> {
  // The first event of a stream may come late; the client should know that it was heard.
  if (length === null) outgoing.flushHeaders()
  const reader = body.getReader()
  const gone = () => void reader.cancel().catch(() => {})
  outgoing.once('close', gone)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      if (value.byteLength <= CHUNK_BYTES && String(value.byteLength) === length) {
        // Head and body are sent in one write.
        outgoing.end(value)
        return
      }
      for (let from = 0; from < value.byteLength; from += CHUNK_BYTES) {
        if (!outgoing.write(value.subarray(from, from + CHUNK_BYTES))) await clientReads(outgoing, 'drain', stall)
        if (isCut(outgoing)) return
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

/** Resolves at the event, which comes when the client has read enough, or when its connection is cut. */
async function clientReads(outgoing: ServerResponse, event: 'drain' | 'finish', stall: number): Promise<void> {
  // Its `close` has come already.
  if (isCut(outgoing)) return
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
