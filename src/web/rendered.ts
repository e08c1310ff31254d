/** An answer as bytes, made once and given to many. */
import { joined } from './bytes.ts'

export interface Rendered {
  readonly status: number
  readonly statusText: string
  /** Prepared once. Not to be changed. */
  readonly headers: Readonly<Record<string, string>>
  /** Shared by all who get it: not to be changed. Null where there is none, as with HEAD. */
  readonly body: Uint8Array<ArrayBuffer> | null
  /** What it weighs, in bytes, headers included. */
  readonly bytes: number
}

/** What was read; or, of a body that is too large, a response that streams it: the beginning that was read, then the rest. */
export type Reading = { rendered: Rendered; streamed?: undefined } | { rendered?: undefined; streamed: Response }

/** Reads a response to its end. @param most bytes of its body */
export async function render(response: Response, most: number): Promise<Reading> {
  if (Number(response.headers.get('content-length') ?? 0) > most) return { streamed: response }
  if (response.body === null) return { rendered: rendered(response, null, 0) }
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    chunks.push(next.value)
    bytes += next.value.byteLength
    if (bytes > most) return { streamed: new Response(resumed(chunks, reader), initOf(response)) }
  }
  return { rendered: rendered(response, chunks, bytes) }
}

function rendered(response: Response, chunks: readonly Uint8Array[] | null, length: number): Rendered {
  const { status, statusText } = response
  // Names are unique: only Set-Cookie comes more than once, and what has that is not shared. Not an assignment, which `__proto__` would not survive.
  const headers = Object.fromEntries(response.headers)
  // Now that it is known, a server can send head and body in one write.
  if (chunks !== null) headers['content-length'] ??= String(length)
  let bytes = length
  for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length
  return { status, statusText, headers, body: chunks === null ? null : joined(chunks, length), bytes }
}

function resumed(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value
      if (chunk === undefined) controller.close()
      else controller.enqueue(new Uint8Array(chunk))
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

const initOf = ({ status, statusText, headers }: Response) => ({ status, statusText, headers })

/** @param age in ms; told in the header from a second on */
export function toResponse({ status, statusText, headers, body }: Rendered, age = 0): Response {
  const response = new Response(body, { status, statusText, headers })
  const seconds = Math.floor(age / 1000)
  if (seconds > 0) response.headers.set('age', String(seconds + Number(response.headers.get('age') ?? 0)))
  return response
}
