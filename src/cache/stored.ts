/**
 * A value as it lies in Redis: a head, and the body behind it unless that is in pieces. Numbers big-endian.
 *
 *   0xc1 | 1 | version: 8 | flags | fresh: 4 | stale: 4 | error: 4 | length: 6
 *   | if RECORDS: table: 4, structures: 2 | if PIECES: pieces: 2, size: 6
 *   | tags: 1, each: size: 2, text, marker: 8 | body
 *
 * 0xc1 begins no MessagePack. The version is random and new with each write. `fresh`, and then `stale` and `error` after it, are
 * milliseconds; the key expires when the longer of both is over, so a reader learns the age from what it has left to live,
 * and no two clocks are compared. `length` is that of the body unpacked, `size` as it is stored. A table is a state of `structures.ts`.
 */

export type Kind = 'msgpack' | 'records' | 'bytes'

export interface Lives {
  /** Milliseconds for which it is good. */
  fresh: number
  /** Milliseconds after that for which it is answered while a new one is made. */
  stale: number
  /** Milliseconds after `fresh` for which it is answered if the loader fails. */
  error: number
}

export interface Encoded {
  kind: Kind
  /** Which table of structures, and how many of its structures must be known. 0 unless `records`. */
  table: number
  structures: number
  /** Compressed with zstd. */
  packed: boolean
  /** Bytes of the body, uncompressed. */
  length: number
  body: Buffer
}

export interface TagVersion {
  name: string
  /** Eight bytes as Latin-1. */
  version: string
}

export interface Stored extends Omit<Encoded, 'body'>, Lives {
  /** Eight bytes as Latin-1. */
  version: string
  tags: readonly TagVersion[]
  /** In how many pieces the body is, and their size in all; 0: it is behind the head. */
  pieces: number
  size: number
  body: Buffer
}

export const VERSION_AT = 2
export const VERSION_BYTES = 8
const MAGIC = 0xc1
const FORMAT = 1
const FIXED = 29
const FLAG = { MSGPACK: 0, RECORDS: 1, BYTES: 2, PACKED: 4, PIECES: 8 }
const KNOWN = 15
const NONE = Buffer.alloc(0)

/** How long Redis keeps it, in ms. */
export const lifeOf = ({ fresh, stale, error }: Lives): number => fresh + Math.max(stale, error)

export function headOf(stored: Stored): Buffer {
  const records = stored.kind === 'records'
  const names = stored.tags.map(({ name }) => Buffer.from(name))
  const size =
    FIXED +
    (records ? 6 : 0) +
    (stored.pieces > 0 ? 8 : 0) +
    1 +
    names.reduce((all, { length }) => all + 2 + length + VERSION_BYTES, 0)
  const head = Buffer.alloc(size)
  const kind = { msgpack: FLAG.MSGPACK, records: FLAG.RECORDS, bytes: FLAG.BYTES }[stored.kind]
  head[0] = MAGIC
  head[1] = FORMAT
  head.write(stored.version, VERSION_AT, 'latin1')
  head[10] = kind | (stored.packed ? FLAG.PACKED : 0) | (stored.pieces > 0 ? FLAG.PIECES : 0)
  head.writeUInt32BE(stored.fresh, 11)
  head.writeUInt32BE(stored.stale, 15)
  head.writeUInt32BE(stored.error, 19)
  head.writeUIntBE(stored.length, 23, 6)
  let at = FIXED
  if (records) {
    at = head.writeUInt32BE(stored.table, at)
    at = head.writeUInt16BE(stored.structures, at)
  }
  if (stored.pieces > 0) {
    at = head.writeUInt16BE(stored.pieces, at)
    at = head.writeUIntBE(stored.size, at, 6)
  }
  at = head.writeUInt8(names.length, at)
  for (const [index, name] of names.entries()) {
    at = head.writeUInt16BE(name.length, at)
    at += name.copy(head, at)
    at += head.write(stored.tags[index]?.version ?? '', at, 'latin1')
  }
  return head
}

/** @throws RangeError, TypeError where it is no value of ours */
export function parseStored(bytes: Buffer): Stored {
  if (bytes[0] !== MAGIC) throw new TypeError('it is no value of this cache')
  if (bytes[1] !== FORMAT) throw new TypeError(`it has format ${bytes[1]}, of which this version knows nothing`)
  const flags = bytes.readUInt8(10)
  if (flags > KNOWN || (flags & 3) === 3) throw new TypeError(`its flags are ${flags}`)
  const kind: Kind = (flags & 3) === FLAG.RECORDS ? 'records' : (flags & 3) === FLAG.BYTES ? 'bytes' : 'msgpack'
  const stored: Stored = {
    version: bytes.toString('latin1', VERSION_AT, VERSION_AT + VERSION_BYTES),
    kind,
    packed: (flags & FLAG.PACKED) > 0,
    fresh: bytes.readUInt32BE(11),
    stale: bytes.readUInt32BE(15),
    error: bytes.readUInt32BE(19),
    length: bytes.readUIntBE(23, 6),
    table: 0,
    structures: 0,
    pieces: 0,
    size: 0,
    tags: [],
    body: NONE,
  }
  let at = FIXED
  if (kind === 'records') {
    stored.table = bytes.readUInt32BE(at)
    stored.structures = bytes.readUInt16BE(at + 4)
    at += 6
  }
  if ((flags & FLAG.PIECES) > 0) {
    stored.pieces = bytes.readUInt16BE(at)
    stored.size = bytes.readUIntBE(at + 2, 6)
    at += 8
    if (stored.pieces === 0) throw new TypeError('it has no pieces')
  }
  const tags: TagVersion[] = []
  for (let left = bytes.readUInt8(at++); left > 0; left--) {
    const end = at + 2 + bytes.readUInt16BE(at)
    if (end + VERSION_BYTES > bytes.length) throw new RangeError('it ends within its tags')
    tags.push({
      name: bytes.toString('utf8', at + 2, end),
      version: bytes.toString('latin1', end, end + VERSION_BYTES),
    })
    at = end + VERSION_BYTES
  }
  stored.tags = tags
  if (stored.pieces === 0) {
    stored.body = bytes.subarray(at)
    stored.size = stored.body.length
  }
  return stored
}
