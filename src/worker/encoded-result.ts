import { decode } from '../values/encoding/encoding.ts'
import type { Encoded } from '../values/jobs/records.ts'

/** The result of a handler in another process, which has encoded it. It is decoded only where somebody wants to see it. */
export class EncodedResult {
  readonly encoded: Encoded

  constructor(encoded: Encoded) {
    this.encoded = encoded
  }

  /** What a handler returned, or what it stands for. */
  static valueOf(returned: unknown): unknown {
    return returned instanceof EncodedResult ? decode(returned.encoded, 'result') : returned
  }
}
