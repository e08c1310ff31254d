/** Job ids: 16 bytes in Redis, a UUID in lower-case text everywhere else. */

export const ID_BYTES = 16

export function idBytes(id: string): Buffer {
  return Buffer.from(id.replaceAll('-', ''), 'hex')
}

/** Of several, one after the other. */
export function idsBytes(jobs: readonly { id: string }[]): Buffer {
  let hex = ''
  for (const { id } of jobs) hex += id
  return Buffer.from(hex.replaceAll('-', ''), 'hex')
}

export function idText(bytes: Buffer, at = 0): string {
  const hex = bytes.toString('hex', at, at + ID_BYTES)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Spreads ids, keys and queues: FNV-1a over the UTF-16 units, the same in every process and language. */
export function hash(text: string): number {
  let sum = 0x811c9dc5
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193)
  return sum >>> 0
}
