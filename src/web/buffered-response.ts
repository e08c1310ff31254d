/** A response that was read once and is given to many requests. */

export interface BufferedResponse {
  readonly status: number
  readonly statusText: string
  readonly headers: Readonly<Record<string, string>>
  /** Not to be changed: all who get it share it. Null if there is none, as with HEAD. */
  readonly body: Uint8Array<ArrayBuffer> | null
  /** Bytes of body and headers. */
  readonly weight: number
}

/**
 * Reads a response to its end.
 * @param most bytes of its body
 * @returns `streamed` if the body is larger: a response that streams what was read, then the rest
 */
export async function buffered(
  response: Response,
  most: number,
): Promise<{ buffered: BufferedResponse } | { streamed: Response }> {
  if (Number(response.headers.get('content-length') ?? 0) > most) return { streamed: response }
  const { status, statusText } = response
  const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = response.body?.getReader()
  const chunks: Uint8Array[] = []
  let weight = 0
  for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) {
    chunks.push(next.value)
    weight += next.value.byteLength
    if (weight > most && reader !== undefined) {
      return { streamed: new Response(resumed(chunks, reader), { status, statusText, headers: response.headers }) }
    }
  }
  // Names are unique: only Set-Cookie comes more than once, and responses with it are not shared.
  const headers = Object.fromEntries(response.headers)
  // With a known length a server sends head and body in one write.
  if (reader !== undefined) headers['content-length'] ??= String(weight)
  for (const [name, value] of Object.entries(headers)) weight += name.length + value.length
  const body = reader === undefined ? null : new Uint8Array(Buffer.concat(chunks))
  return { buffered: { status, statusText, headers, body, weight } }
}

function resumed(chunks: Uint8Array[], reader: ReadableStreamDefaultReader<Uint8Array>) {
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value
      if (chunk === undefined) controller.close()
      else controller.enqueue(new Uint8Array(chunk))
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

/** @param age in ms; from a second on, the header `Age` says it */
export function toResponse({ status, statusText, headers, body }: BufferedResponse, age = 0): Response {
  const response = new Response(body, { status, statusText, headers })
  const seconds = Math.floor(age / 1000)
  if (seconds > 0) response.headers.set('age', String(seconds + Number(response.headers.get('age') ?? 0)))
  return response
}
