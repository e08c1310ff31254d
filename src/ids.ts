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
/** Hexadecimal digits of 48 bits. */
const TAIL = 12

const starts = new Uint32Array(POOL)
const tails = Buffer.alloc((POOL * TAIL) / 2)
/** The random bits of the ids to come, as text. */
let tailText = ''
let used = POOL
let lastMs = -1
let counter = 0
/** Time, version and the counter's upper 12 bits as text, which many ids share. */
let head = ''

export function newId(): string {
  if (used === POOL) {
    randomFillSync(starts)
    randomFillSync(tails)
    tailText = tails.toString('hex')
    used = 0
  }
  const start = (starts[used] ?? 0) >>> 7
  const tail = tailText.slice(used * TAIL, ++used * TAIL)
  const now = Date.now()
  if (now > lastMs) begin(now, start)
  // A clock that stands still or steps back must not make ids fall; nor may the counter run over.
  else if (counter === 0x3ff_ffff) begin(lastMs + 1, start)
  else if ((++counter & LOWER) === 0) setHead()
  return `${head}${(0x8000 | (counter & LOWER)).toString(16)}-${tail}`
}

/** The counter's bits that are not in the head. */
const LOWER = 0x3fff

function begin(ms: number, start: number): void {
  lastMs = ms
  counter = start
  setHead()
}

function setHead(): void {
  const text = lastMs.toString(16).padStart(12, '0')
  head = `${text.slice(0, 8)}-${text.slice(8)}-${(0x7000 | (counter >>> 14)).toString(16)}-`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Any version is taken, so that callers may bring ids that they have. @returns it in lower case @throws InvalidName */
export function checkId(id: unknown): string {
  if (typeof id === 'string' && UUID.test(id)) return id.toLowerCase()
  throw new MillpondError('InvalidName', `a job id is a UUID; got ${shown(id)}`)
}
