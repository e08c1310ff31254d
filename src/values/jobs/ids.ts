/**
 * Job ids: UUID version 7 (RFC 9562, section 5.7), in lower-case text, rising within the process (its section 6.2, method 1):
 * 48 bits of Unix time in milliseconds, a counter of 26 bits that starts at a random value below 2^25 each millisecond,
 * and 48 random bits. Pinned by `contract/vectors/ids.json`.
 *
 * Our own, because it is on the path of every push: the usual library draws fresh random bytes for each id, which alone
 * took half of the time of a bulk push. Here they are drawn for 512 ids at once.
 */
import { randomFillSync } from 'node:crypto'
import { MillpondError } from '../errors/errors.ts'
import { shown } from '../time/duration.ts'

/** Ids whose random bits are drawn at once. */
const POOL = 512
/** Hexadecimal digits of the random end of an id. */
const TAIL = 12
/** The counter's lower bits, which stand behind the variant. */
const LOWER = 0x3fff
const GREATEST = 0x3ff_ffff

const starts = new Uint32Array(POOL)
const random = Buffer.alloc((POOL * TAIL) / 2)
/** The random bits of the ids to come, as text. */
let tails = ''
let used = POOL

let lastMs = -1
let counter = 0
/** Time, version and the counter's upper 12 bits as text, which many ids share. */
let head = ''

export function newId(): string {
  const now = Date.now()
  if (used === POOL) drawRandom()
  if (now > lastMs) startAt(now)
  // A clock that stands still or steps back must not make ids fall; nor may the counter run over.
  else if (counter === GREATEST) startAt(lastMs + 1)
  else if ((++counter & LOWER) === 0) writeHead()
  const from = used++ * TAIL
  return `${head}${(0x8000 | (counter & LOWER)).toString(16)}-${tails.slice(from, from + TAIL)}`
}

function drawRandom(): void {
  randomFillSync(starts)
  tails = randomFillSync(random).toString('hex')
  used = 0
}

function startAt(ms: number): void {
  lastMs = ms
  counter = (starts[used] ?? 0) >>> 7
  writeHead()
}

function writeHead(): void {
  const time = lastMs.toString(16).padStart(12, '0')
  head = `${time.slice(0, 8)}-${time.slice(8)}-${(0x7000 | (counter >>> 14)).toString(16)}-`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Whether it is a UUID of any version, so that callers may bring ids that they have. */
export const isId = (id: unknown): id is string => typeof id === 'string' && UUID.test(id)

/** @returns the id in lower case @throws InvalidName */
export function checkId(id: unknown): string {
  if (isId(id)) return id.toLowerCase()
  throw new MillpondError('InvalidName', `a job id is a UUID; got ${shown(id)}`)
}
