/** Reads a request's body within bounds of size and time. */
import { Refusal } from './problem.ts'

export interface BodyLimits {
  /** In bytes. */
  maxBody: number
  /** Milliseconds from the first read until the body must be complete. */
  bodyTimeout: number
}

/** Reads a body chunk by chunk. The body is locked from the start, so that nothing else reads it. */
export class BoundedReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #limits: BodyLimits
  readonly #late = Promise.withResolvers<never>()
  /** The client's word is used only to refuse early. */
  readonly #announced: number
  #timer: NodeJS.Timeout | undefined
  #size = 0

  constructor(request: Request, body: ReadableStream<Uint8Array>, limits: BodyLimits) {
    this.#limits = limits
    this.#announced = Number(request.headers.get('content-length') ?? 0)
    this.#reader = body.getReader()
    // The time may be over when nobody reads.
    this.#late.promise.catch(() => {})
  }

  /** @returns undefined at the end @throws Refusal: 400, 408, 413 */
  async next(): Promise<Uint8Array | undefined> {
    const { maxBody, bodyTimeout } = this.#limits
    try {
      if (this.#announced > maxBody) throw tooLarge(maxBody)
      const late = () => this.#late.reject(new Refusal(408, `The body did not come within ${bodyTimeout} ms.`))
      this.#timer ??= setTimeout(late, bodyTimeout)
      const { done, value } = await Promise.race([this.#reader.read(), this.#late.promise])
      if (done) clearTimeout(this.#timer)
      this.#size += value?.byteLength ?? 0
      if (this.#size > maxBody) throw tooLarge(maxBody)
      return value
    } catch (error) {
      this.cancel()
      throw error instanceof Refusal ? error : malformed('it broke off')
    }
  }

  /** Drops the rest of the body. */
  cancel(): void {
    clearTimeout(this.#timer)
    this.#reader.cancel().catch(() => {})
  }
}

function tooLarge(maxBody: number): Refusal {
  return new Refusal(413, `The body is over the limit of ${maxBody} bytes.`, { code: 'PayloadTooLarge' })
}

/** The refusal of a body that is not what its Content-Type says. */
export function malformed(reason: string): Refusal {
  return new Refusal(400, `The body was not understood: ${reason}.`, { code: 'PayloadNotDecodable' })
}
