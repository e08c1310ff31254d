/** A request's body, read within bounds: of bytes, and of time. */
import { malformed } from './plain.ts'
import { Refusal } from './problem.ts'

export interface BodyLimits {
  /** In bytes. */
  maxBody: number
  /** Milliseconds until all of it must be there, from the first read. */
  bodyTimeout: number
}

/** Reads a body chunk by chunk. The body is locked from the start, so that nothing reads past the bounds. */
export class BoundedReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #limits: BodyLimits
  readonly #late = Promise.withResolvers<never>()
  readonly #announced: number
  #timer: NodeJS.Timeout | undefined
  #size = 0

  constructor(request: Request, body: ReadableStream<Uint8Array>, limits: BodyLimits) {
    this.#limits = limits
    // Trusted only to refuse early; what counts is what comes.
    this.#announced = Number(request.headers.get('content-length') ?? 0)
    this.#reader = body.getReader()
    // It may come when nobody reads.
    this.#late.promise.catch(() => {})
  }

  /** @returns undefined at the end @throws Refusal: 400, 408, 413 */
  async next(): Promise<Uint8Array | undefined> {
    const { maxBody, bodyTimeout } = this.#limits
    try {
      if (this.#announced > maxBody) throw tooLarge(maxBody)
      this.#timer ??= setTimeout(() => this.#late.reject(tooLate(bodyTimeout)), bodyTimeout)
      const { done, value } = await Promise.race([this.#reader.read(), this.#late.promise])
      if (done) {
        clearTimeout(this.#timer)
        return undefined
      }
      this.#size += value.byteLength
      if (this.#size > maxBody) throw tooLarge(maxBody)
      return value
    } catch (error) {
      this.cancel()
      throw error instanceof Refusal ? error : malformed('it broke off')
    }
  }

  /** What is still to come is of no use to anybody. */
  cancel(): void {
    clearTimeout(this.#timer)
    this.#reader.cancel().catch(() => {})
  }
}

function tooLate(bodyTimeout: number): Refusal {
  return new Refusal({ status: 408, detail: `The body did not come within ${bodyTimeout} ms.` })
}

function tooLarge(maxBody: number): Refusal {
  const detail = `The body is over the limit of ${maxBody} bytes.`
  return new Refusal({ status: 413, code: 'PayloadTooLarge', detail })
}
