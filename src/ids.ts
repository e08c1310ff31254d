/**
 * Job ids: UUID version 7 (RFC 9562, section 5.7), in lower-case text, rising within the process (its section 6.2, method 1):
 * 48 bits of Unix time in milliseconds, a counter of 26 bits that starts at a random value below 2^25 each millisecond,
 * and 48 random bits. Pinned by `contract/vectors/ids.json`.
 *
 * Our own, because it is on the path of every push: the usual library draws fresh random bytes for each id, which alone
 * took half of the time of a bulk push. Here they are drawn for 512 ids at once.
 */
import { randomFillSync } from 'node:crypto'
import { shown } from './duration.ts'
import { MillpondError } from './errors.ts'

const POOL = 512
const WORDS = 3

const pool = new Uint32Array(POOL * WORDS)
let used = pool.length
let lastMs = -1
let counter = 0
/** The 48 bits of time as text, which many ids share. */
let time = ''

export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const a = pool[used++] ?? 0
  const b = pool[used++] ?? 0
  const start = (pool[used++] ?? 0) >>> 7
  const now = Date.now()
  if (now > lastMs) setTime(now, start)
  // A clock that stands still or steps back must not make ids fall; nor may the counter run over.
  else if (counter === 0x3ff_ffff) setTime(lastMs + 1, start)
  else counter++
  const high = 0x7000 | (counter >>> 14)
  const low = 0x8000 | (counter & 0x3fff)
  return `${time}-${hex(high, 0x1_0000)}-${hex(low, 0x1_0000)}-${hex(a & 0xff_ffff, 0x100_0000)}${hex(b & 0xff_ffff, 0x100_0000)}`
}

function setTime(ms: number, start: number): void {
  lastMs = ms
  counter = start
  const text = ms.toString(16).padStart(12, '0')
  time = `${text.slice(0, 8)}-${text.slice(8)}`
}

/** @param one 16 to the power of the digits wanted */
function hex(value: number, one: number): string {
  return (value + one).toString(16).slice(1)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Any version is taken, so that callers may bring ids that they have. @returns it in lower case @throws InvalidName */
export function checkId(id: unknown): string {
  if (typeof id === 'string' && UUID.test(id)) return id.toLowerCase()
  throw new MillpondError('InvalidName', `a job id is a UUID; got ${shown(id)}`)
}
