import { createHash } from 'node:crypto'

/**
 * The id of a child that a job runs as a step: contract/steps.md, "Children". The first 48 bits are those of the parent's id, so children
 * stand with their parents in every order by id.
 * @param parent a UUIDv7 as text @param key of the step
 */
export function childId(parent: string, key: string): string {
  const hash = createHash('sha256').update(`${parent.toLowerCase()}/${key}`).digest()
  const bytes = Buffer.concat([Buffer.from(parent.replaceAll('-', '').slice(0, 12), 'hex'), hash.subarray(0, 10)])
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
