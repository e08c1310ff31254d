/** Bounds the body of a request also if a hook of the application reads it. */
import type { UnderlyingSource } from 'node:stream/web'
import { fromJson } from './body.ts'
import { type BodyLimits, BoundedReader } from './body-limits.ts'
import { formData } from './form.ts'
import { Refusal } from './problem.ts'

export interface Bounds {
  /** Why the body was not read to its end, even if the code that read it caught the error. */
  refusal: Refusal | undefined
}

const READERS = ['arrayBuffer', 'blob', 'bytes', 'text'] as const

/**
 * Bounds the body of a request whichever way it is read: `json()`, `formData()`, `body`, `clone()` and so on. A body
 * that is no JSON or no form is a Refusal to the hook that takes it for one. The request is changed in place: a copy
 * would be another request to the hooks, and to the framework that made it. A body that was read before, or is being
 * read, is left as it is: nobody can read it again.
 */
export function boundBody(request: Request, limits: BodyLimits): Bounds {
  const bounds: Bounds = { refusal: undefined }
  const { url, method, headers, signal, body, bodyUsed } = request
  if (body === null) refuseUnparsable(request, async () => new Uint8Array())
  if (body === null || bodyUsed || body.locked) return bounds
  const reader = new BoundedReader(request, body, limits)
  let made: Request | undefined
  const bounded = () => {
    // With a stream as the body, fetch demands `duplex`.
    made ??= new Request(url, { method, headers, signal, body: streamOf(reader, bounds), duplex: 'half' })
    return made
  }
  define(request, 'body', { get: () => bounded().body })
  define(request, 'bodyUsed', { get: () => made?.bodyUsed ?? false })
  for (const name of READERS) {
    if (name in request) define(request, name, { value: () => bounded()[name]() })
  }
  define(request, 'clone', { value: () => parsing(Request.prototype.clone.call(bounded())) })
  refuseUnparsable(request, () => bounded().arrayBuffer())
  return bounds
}

/** The clone of a bounded request, which is bounded itself. */
function parsing(clone: Request): Request {
  define(clone, 'clone', { value: () => parsing(Request.prototype.clone.call(clone)) })
  refuseUnparsable(clone, () => clone.arrayBuffer())
  return clone
}

/** Makes `json()` and `formData()` refuse what they cannot parse, as `readBody` does: to the platform it would be an error of the hook. */
function refuseUnparsable(request: Request, read: () => Promise<ArrayBuffer | Uint8Array<ArrayBuffer>>): void {
  const { headers } = request
  const bytes = async () => new Uint8Array(await read())
  define(request, 'json', { value: async () => fromJson(await bytes()) })
  define(request, 'formData', { value: async () => formData(bytes, headers) })
}

function define(request: Request, name: string, property: PropertyDescriptor): void {
  Object.defineProperty(request, name, { configurable: true, ...property })
}

function streamOf(reader: BoundedReader, bounds: Bounds): ReadableStream<Uint8Array> {
  const source: UnderlyingSource<Uint8Array> = {
    async pull(controller) {
      try {
        const chunk = await reader.next()
        if (chunk === undefined) controller.close()
        else controller.enqueue(chunk)
      } catch (error) {
        if (error instanceof Refusal) bounds.refusal = error
        controller.error(error)
      }
    },
    cancel: () => reader.cancel(),
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}
