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

/** Ids whose random bits are drawn at once. */
const POOL = 512
/** So many ids at most are written side by side into one text. Each is a part of it, so a single one that is kept keeps the text: 1 KiB. */
const BLOCK = 32
const LENGTH = 36
/** Characters before the counter's lower bits, and those of the random end. */
const HEAD = 19
const TAIL = 12
/** The counter's bits that are not in the head. */
const LOWER = 0x3fff
const DIGITS = Buffer.from('0123456789abcdef')
const DASH = 0x2d

const starts = new Uint32Array(POOL)
const random = Buffer.alloc((POOL * TAIL) / 2)
/** The random bits of the ids to come, as text. */
const tails = Buffer.alloc(POOL * TAIL)
let used = POOL

let lastMs = -1
let counter = 0
/** Time, version and the counter's upper 12 bits as text, which many ids share. */
const head = Buffer.alloc(HEAD)

const block = Buffer.alloc(BLOCK * LENGTH)
/** The ids written last, and where the next one to hand out begins. */
let text = ''
let at = 0
/** How many the last block got. The next gets twice as many within a millisecond, and one in a new one: few while few are asked for. */
let size = 1

/** @param now milliseconds since 1970. Given where many are made at once, since to ask the clock takes as long as the rest. */
export function newId(now = Date.now()): string {
  if (at === text.length || now > lastMs) layDown(now)
  const id = text.slice(at, at + LENGTH)
  at += LENGTH
  return id
}

function layDown(now: number): void {
  size = now > lastMs ? 1 : Math.min(size * 2, BLOCK)
  for (let i = 0; i < size; i++) write(now, i * LENGTH)
  text = block.toString('latin1', 0, size * LENGTH)
  at = 0
}

function write(now: number, to: number): void {
  if (used === POOL) draw()
  if (now > lastMs) begin(now, (starts[used] ?? 0) >>> 7)
  // A clock that stands still or steps back must not make ids fall; nor may the counter run over.
  else if (counter === 0x3ff_ffff) begin(lastMs + 1, (starts[used] ?? 0) >>> 7)
  else if ((++counter & LOWER) === 0) setHead()
  for (let i = 0; i < HEAD; i++) block[to + i] = head[i] ?? 0
  const lower = 0x8000 | (counter & LOWER)
  for (let i = 0; i < 4; i++) block[to + HEAD + i] = DIGITS[(lower >>> (12 - 4 * i)) & 15] ?? 0
  block[to + HEAD + 4] = DASH
  const from = used++ * TAIL
  for (let i = 0; i < TAIL; i++) block[to + LENGTH - TAIL + i] = tails[from + i] ?? 0
}

function draw(): void {
  randomFillSync(starts)
  randomFillSync(random)
  tails.write(random.toString('hex'), 'latin1')
  used = 0
}

function begin(ms: number, start: number): void {
  lastMs = ms
  counter = start
  setHead()
}

function setHead(): void {
  const time = lastMs.toString(16).padStart(12, '0')
  head.write(`${time.slice(0, 8)}-${time.slice(8)}-${(0x7000 | (counter >>> 14)).toString(16)}-`, 'latin1')
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Any version is taken, so that callers may bring ids that they have. @returns it in lower case @throws InvalidName */
export function checkId(id: unknown): string {
  if (typeof id === 'string' && UUID.test(id)) return id.toLowerCase()
  throw new MillpondError('InvalidName', `a job id is a UUID; got ${shown(id)}`)
}
