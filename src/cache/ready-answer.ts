/** HTTP responses as bytes: rendered once from a value, sent many times. */

import { createHash } from 'node:crypto'
import { types } from 'node:util'
import type { Format } from '../values/encoding/accept.ts'
import { toJson, toMessagePack } from './redis/codec.ts'

export interface Rendered {
  /** 304: the client has these bytes already. 404: the value is null or undefined. */
  readonly status: 200 | 304 | 404
  /** Names in lower case. Shared by all requests: do not change them. */
  readonly headers: Readonly<Record<string, string>>
  /** Shared by all requests: do not change it. Null with 304 and 404. */
  readonly body: Buffer | null
}

/** What is read of a request: `IncomingMessage.headers`, and so Express' and Fastify's, or an object of Headers. */
export interface RequestHeaders {
  accept?: string | undefined
  'if-none-match'?: string | undefined
}

const NOTHING: Rendered = {
  status: 404,
  headers: { 'content-type': 'application/json', 'content-length': '0', vary: 'accept' },
  body: null,
}

/** Bytes stay bytes, whatever is accepted. @throws PayloadNotEncodable */
export function render(value: unknown, format: Format): Rendered {
  if (value === undefined || value === null) return NOTHING
  if (types.isUint8Array(value)) {
    return ready('application/octet-stream', Buffer.from(value.buffer, value.byteOffset, value.byteLength))
  }
  if (format === 'json') return ready('application/json; charset=utf-8', toJson(value))
  return ready('application/vnd.msgpack', toMessagePack(value))
}

function ready(type: string, body: Buffer): Rendered {
  // Of the content, so that a value that is loaded anew and is the same need not be sent again.
  const etag = `"${createHash('sha1').update(body).digest('base64url').slice(0, 22)}"`
  const headers = { 'content-type': type, 'content-length': String(body.length), etag, vary: 'accept' }
  return { status: 200, headers, body }
}

/** As the request's `If-None-Match` has it. */
export function conditional(answer: Rendered, ifNoneMatch: string): Rendered {
  const { etag } = answer.headers
  const known = ifNoneMatch.split(',').map((given) => given.trim().replace(/^W\//, ''))
  if (etag === undefined || (ifNoneMatch.trim() !== '*' && !known.includes(etag))) return answer
  return { status: 304, headers: { etag, vary: 'accept' }, body: null }
}

/** A Response with these bytes; without a body for HEAD. It has its own copy of the headers. */
export function toResponse({ status, headers, body }: Rendered, method: string): Response {
  // Buffers of ready answers are never of shared memory, which is all that the type leaves open.
  const bytes =
    body === null || method === 'HEAD' ? null : new Uint8Array(body.buffer as ArrayBuffer, body.byteOffset, body.length)
  return new Response(bytes, { status, headers: { ...headers } })
}
