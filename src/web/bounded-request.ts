/**
 * A request whose body is bounded whichever way it is read: `json()`, `formData()`, `body`, `clone()` and so on. It is changed in place:
 * a copy would be another request to the hooks, and to the framework that handed it to us.
 */
import { type BodyLimits, BoundedReader } from './bounded-body.ts'
import { Refusal } from './problem.ts'

const READERS = ['arrayBuffer', 'blob', 'bytes', 'clone', 'formData', 'json', 'text'] as const

export interface Bounds {
  /** Why the body was not read to its end, whatever became of that error where it was read. */
  refusal: Refusal | undefined
}

/** A body that was read before, or is being read, is left as it is: nobody can read it again. */
export function boundBody(request: Request, limits: BodyLimits): Bounds {
  const bounds: Bounds = { refusal: undefined }
  const { url, method, headers, signal, body, bodyUsed } = request
  if (body === null || bodyUsed || body.locked) return bounds
  const reader = new BoundedReader(request, body, limits)
  let made: Request | undefined
  const bounded = () => {
    // Fetch asks for `duplex` with a stream for a body, and knows no other value.
    made ??= new Request(url, { method, headers, signal, body: streamOf(reader, bounds), duplex: 'half' })
    return made
  }
  Object.defineProperty(request, 'body', { configurable: true, get: () => bounded().body })
  Object.defineProperty(request, 'bodyUsed', { configurable: true, get: () => made?.bodyUsed ?? false })
  for (const name of READERS) {
    if (name in request) Object.defineProperty(request, name, { configurable: true, value: () => bounded()[name]() })
  }
  return bounds
}

function streamOf(reader: BoundedReader, bounds: Bounds): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
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
    },
    { highWaterMark: 0 },
  )
}
