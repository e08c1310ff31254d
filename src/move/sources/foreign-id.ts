/** Ids for a rival's jobs: made of what names them, so that a job which is moved again has the same id and is known. */
import { createHash } from 'node:crypto'

/** A UUID of version 7 in form: the time of the push, and bits of the hash. @param pushedAt in milliseconds since 1970 */
export function foreignId(pushedAt: number, ...names: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(names)).digest('hex')
  const time = Math.max(0, Math.min(pushedAt, 2 ** 48 - 1))
    .toString(16)
    .padStart(12, '0')
  const variant = ((Number.parseInt(hash[3] ?? '0', 16) & 3) | 8).toString(16)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(0, 3)}-${variant}${hash.slice(4, 7)}-${hash.slice(7, 19)}`
}
