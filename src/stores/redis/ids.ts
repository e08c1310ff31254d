/** Job ids: 16 bytes in Redis, a UUID in lower-case text everywhere else. */

/** Where the two digits of each byte stand in the text. */
const AT: readonly number[] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const DIGITS = new Uint8Array(128)
for (let digit = 0; digit < 16; digit++) DIGITS[digit.toString(16).charCodeAt(0)] = digit

export const ID_BYTES = 16
/** The last of them, which name a job in Redis. */
export const NAME_BYTES = 6

/** `Buffer.write(…, 'hex')` would need the text without its dashes, and costs a call per piece. */
export function writeId(buffer: Uint8Array, at: number, id: string): void {
  for (let i = 0; i < ID_BYTES; i++) {
    const from = AT[i] ?? 0
    buffer[at + i] = ((DIGITS[id.charCodeAt(from)] ?? 0) << 4) | (DIGITS[id.charCodeAt(from + 1)] ?? 0)
  }
}

export function readId(buffer: Buffer, at: number): string {
  const hex = buffer.toString('hex', at, at + ID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Of an id whose last bytes, the name, stand before the others. */
export function readNamedId(buffer: Buffer, at: number): string {
  const hex = buffer.toString('hex', at, at + ID_BYTES)
  return `${hex.slice(12, 20)}-${hex.slice(20, 24)}-${hex.slice(24, 28)}-${hex.slice(28)}-${hex.slice(0, 12)}`
}

/** Spreads ids and keys over partitions: FNV-1a over the UTF-16 units, the same in every process and language. */
export function hash(text: string): number {
  let sum = 0x811c9dc5
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193)
  return sum >>> 0
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const isUuid = (text: string): boolean => UUID.test(text)
