/** Messages of other programs (RabbitMQ) have headers, which jobs have not: they go into the data, as `{ headers, data }`. */
import { decode, encode, LARGEST_PAYLOAD } from '../../values/encoding/encoding.ts'
import type { Encoded } from '../../values/jobs/records.ts'

/** @param headers of a claim, where the store gives any */
export function withHeaders(data: Encoded, headers: unknown): Encoded {
  if (headers === undefined) return data
  if (data.encoding === 'json' && typeof data.body === 'string') {
    // The text as it is, since parsing would change large numbers. What claims to be JSON and is none goes on as a text.
    const body = isJson(data.body) ? data.body : JSON.stringify(data.body)
    return { encoding: 'json', body: `{"headers":${JSON.stringify(headers)},"data":${body}}` }
  }
  return encode({ headers, data: decode(data, 'data') }, 'data', LARGEST_PAYLOAD)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
