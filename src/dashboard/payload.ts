/** Payloads as the page shows them: within bounds, without what is redacted, and with nothing changed on the way. */
import { types } from 'node:util'
import { decode, isNestedTooDeep } from '../values/encoding/encoding.ts'
import { isSealed } from '../values/encoding/sealed-form.ts'
import { isNotDecodable } from '../values/errors/errors.ts'
import type { JobPart } from '../values/jobs/job.ts'
import type { Encoded, JobRecord } from '../values/jobs/records.ts'
import type { Redaction } from './redact.ts'
import type { PayloadView, Shown } from './views.ts'

/** Of one payload: entries in all, entries of one array or object, characters of one text, bytes of one byte string. */
const MAX_ENTRIES = 5000
const MAX_SIBLINGS = 1000
const MAX_TEXT = 20_000
const MAX_BYTES = 4096

export function payloadView(record: JobRecord, part: JobPart, redaction: Redaction): PayloadView {
  const encoded = record[part]
  return encoded === null ? { state: 'none' } : bodyView(encoded, redaction, `${part} of job ${record.id}`)
}

export function bodyView(encoded: Encoded, redaction: Redaction, what = 'data'): PayloadView {
  const { encoding } = encoded
  const bytes = sizeOf(encoded)
  if (isSealed(encoded.body)) return { state: 'sealed', bytes, encoding }
  try {
    const value = decode(encoded, what)
    if (!isNestedTooDeep(value)) return { state: 'shown', bytes, encoding, ...new Showing().show(value, redaction) }
  } catch (error) {
    if (!isNotDecodable(error)) throw error
  }
  return { state: 'undecodable', bytes, encoding }
}

export const sizeOf = ({ body }: Encoded): number => (typeof body === 'string' ? Buffer.byteLength(body) : body.length)

/** A value that is no payload of its own, such as the fields of a line of the log. */
export const shownValue = (value: unknown, redaction: Redaction): Shown => new Showing().show(value, redaction).value

class Showing {
  #entries = 0
  #redacted = false
  #cut = false

  show(value: unknown, redaction: Redaction): { value: Shown; redacted: boolean; cut: boolean } {
    const shown = this.#of(value, redaction)
    return { value: shown, redacted: this.#redacted, cut: this.#cut }
  }

  #of(value: unknown, redaction: Redaction): Shown {
    if (redaction.hides) {
      this.#redacted = true
      return ['x']
    }
    switch (typeof value) {
      case 'boolean':
        return value
      case 'number':
        // JSON has neither NaN nor infinities nor minus zero.
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : ['n', Object.is(value, -0) ? '-0' : String(value)]
      case 'bigint':
        return ['i', String(value)]
      case 'string':
        return this.#text(value)
      case 'object':
        return value === null ? null : this.#object(value, redaction)
      default:
        return ['u']
    }
  }

  #text(text: string): Shown {
    if (text.length <= MAX_TEXT) return text.toWellFormed()
    this.#cut = true
    return ['s', text.slice(0, MAX_TEXT).toWellFormed(), text.length]
  }

  #object(value: object, redaction: Redaction): Shown {
    if (types.isUint8Array(value)) {
      if (value.length > MAX_BYTES) this.#cut = true
      return ['b', Buffer.from(value.subarray(0, MAX_BYTES)).toString('base64'), value.length]
    }
    if (types.isDate(value)) return ['d', Number.isNaN(value.getTime()) ? 'no valid date' : value.toISOString()]
    if (Array.isArray(value)) {
      const items = value.slice(0, this.#room(value.length))
      return ['a', items.map((item) => this.#of(item, redaction)), value.length - items.length]
    }
    const all = Object.entries(value)
    const entries = all.slice(0, this.#room(all.length))
    const shown = entries.map(
      ([key, item]) => [key.slice(0, MAX_TEXT).toWellFormed(), this.#of(item, redaction.at(key))] as const,
    )
    return ['o', shown, all.length - entries.length]
  }

  /** How many of so many entries may be shown. */
  #room(wanted: number): number {
    const room = Math.min(wanted, MAX_SIBLINGS, Math.max(0, MAX_ENTRIES - this.#entries))
    this.#entries += room
    if (room < wanted) this.#cut = true
    return room
  }
}
