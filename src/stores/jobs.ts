/** What stores do with jobs that are handed in. */
import type { Encoded, NewJob } from '../store.ts'

const COMMON = ['queue', 'priority', 'delay', 'runAt', 'attempts', 'timeout', 'group', 'trace'] as const

/** Whether they differ in id and data alone, have no keys, and their data is JSON, as in most batches. One statement can store them all. */
export function areAlike([first, ...others]: readonly NewJob[]): boolean {
  const isPlain = ({ data, key }: NewJob) => data.encoding === 'json' && typeof data.body === 'string' && key === null
  if (first === undefined || !isPlain(first)) return false
  const { cost = 1 } = first
  return others.every(
    (job) => isPlain(job) && (job.cost ?? 1) === cost && COMMON.every((name) => job[name] === first[name]),
  )
}

/** Bytes of its own: the caller may change those that it gave. Text cannot change. */
export const copyBody = (body: string | Uint8Array): string | Uint8Array =>
  typeof body === 'string' ? body : new Uint8Array(body)

export const copyEncoded = <E extends Encoded | null>(encoded: E): E | Encoded =>
  encoded === null ? encoded : { encoding: encoded.encoding, body: copyBody(encoded.body) }
