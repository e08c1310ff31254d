/** Calls of the server. All are POSTs of JSON, so that no name, search or payload is in a URL. */
import type { BulkLine } from '../views.ts'

/** What the server refused, in its words. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

async function send(name: string, body: object, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(`./api/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new Refused(0, 'The server cannot be reached.')
  })
  // The host application asks for a login: the browser goes there itself.
  if (response.redirected) location.reload()
  if (response.ok) return response
  const document: unknown = await response.json().catch(() => ({}))
  const detail =
    typeof document === 'object' && document !== null && 'detail' in document ? String(document.detail) : ''
  throw new Refused(response.status, detail === '' ? `The server answered ${response.status}.` : detail)
}

/** The answer's type is the caller's word for it: both ends are built together. */
export async function ask<Answer>(name: string, body: object): Promise<Answer> {
  return (await send(name, body)).json()
}

/** @param told called with each line of the answer */
export async function askLines(
  name: string,
  body: object,
  signal: AbortSignal,
  told: (line: BulkLine) => void,
): Promise<void> {
  const { body: stream } = await send(name, body, signal)
  let rest = ''
  const decoder = new TextDecoder()
  const reader = stream?.getReader()
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
    const lines = (rest + decoder.decode(part.value, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) told(JSON.parse(line))
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
