/**
 * A value as it lies in Redis: a head, and the body behind it unless that is in chunks. Numbers big-endian.
 *
 *   0xc1 | 1 | version: 8 | flags | fresh: 4 | stale: 4 | error: 4 | length: 6
 *   | if records: table: 4, structures: 2 | if CHUNKS: chunks: 2, size: 6
 *   | tags: 1, each: size: 2, text, marker: 8 | body
 *
 * 0xc1 begins no MessagePack. The version is random and new with each write. `fresh`, and then `stale` and `error` after it, are
 * milliseconds; the key expires when the longer of both is over, so a reader learns the age from what it has left to live,
 * and no two clocks are compared. `length` is that of the body unpacked, `size` as it is stored. A table is a state of `structures.ts`.
 */

/** By the lowest two bits of the flags. */
const KINDS = ['msgpack', 'records', 'bytes'] as const
export type Kind = (typeof KINDS)[number]

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

export interface TagMarker {
  name: string
  /** Eight bytes as Latin-1. */
  marker: string
}

export interface Stored extends Encoded, Lives {
  /** Eight bytes as Latin-1. */
  version: string
  tags: readonly TagMarker[]
  /** In how many chunks the body is, and their size in all; 0: it is behind the head. */
  chunks: number
  size: number
}

const VERSION_AT = 2
export const VERSION_BYTES = 8
/** Up to the end of the version. */
export const START_BYTES = VERSION_AT + VERSION_BYTES
const MAGIC = 0xc1
const FORMAT = 1
const FIXED_BYTES = 29
const PACKED = 4
const CHUNKS = 8

/** How long Redis keeps it, in ms. */
export const lifeOf = ({ fresh, stale, error }: Lives): number => fresh + Math.max(stale, error)

/** @param start at least the first `START_BYTES` */
export const versionOf = (start: Buffer): string => start.toString('latin1', VERSION_AT, START_BYTES)

export function headOf({ kind, version, tags, chunks, ...stored }: Stored): Buffer {
  const names = tags.map(({ name }) => Buffer.from(name))
  const tagBytes = names.reduce((all, { length }) => all + 2 + length + VERSION_BYTES, 1)
  const head = Buffer.alloc(FIXED_BYTES + (kind === 'records' ? 6 : 0) + (chunks > 0 ? 8 : 0) + tagBytes)
  head[0] = MAGIC
  head[1] = FORMAT
  head.write(version, VERSION_AT, 'latin1')
  head[10] = KINDS.indexOf(kind) | (stored.packed ? PACKED : 0) | (chunks > 0 ? CHUNKS : 0)
  head.writeUInt32BE(stored.fresh, 11)
  head.writeUInt32BE(stored.stale, 15)
  head.writeUInt32BE(stored.error, 19)
  let at = head.writeUIntBE(stored.length, 23, 6)
  if (kind === 'records') {
    at = head.writeUInt32BE(stored.table, at)
    at = head.writeUInt16BE(stored.structures, at)
  }
  if (chunks > 0) {
    at = head.writeUInt16BE(chunks, at)
    at = head.writeUIntBE(stored.size, at, 6)
  }
  at = head.writeUInt8(names.length, at)
  for (const [index, name] of names.entries()) {
    at = head.writeUInt16BE(name.length, at)
    at += name.copy(head, at)
    at += head.write(tags[index]?.marker ?? '', at, 'latin1')
  }
  return head
}

/** @throws RangeError, TypeError where it is no value of ours */
export function parseStored(bytes: Buffer): Stored {
  if (bytes[0] !== MAGIC) throw new TypeError('it is no value of this cache')
  if (bytes[1] !== FORMAT) throw new TypeError(`it has format ${bytes[1]}, of which this version knows nothing`)
  const flags = bytes.readUInt8(10)
  const kind = KINDS[flags & 3]
  if (kind === undefined || flags >= 2 * CHUNKS) throw new TypeError(`its flags are ${flags}`)
  let at = FIXED_BYTES
  const next = (size: number): number => {
    at += size
    return bytes.readUIntBE(at - size, size)
  }
  const [table, structures] = kind === 'records' ? [next(4), next(2)] : [0, 0]
  const isChunked = (flags & CHUNKS) > 0
  const [chunks, size] = isChunked ? [next(2), next(6)] : [0, 0]
  if (isChunked && chunks === 0) throw new TypeError('it has no chunks')
  const tags = Array.from({ length: next(1) }, () => {
    const end = next(2) + at
    if (end + VERSION_BYTES > bytes.length) throw new RangeError('it ends within its tags')
    const name = bytes.toString('utf8', at, end)
    at = end + VERSION_BYTES
    return { name, marker: bytes.toString('latin1', end, at) }
  })
  const body = isChunked ? Buffer.alloc(0) : bytes.subarray(at)
  return {
    version: versionOf(bytes),
    kind,
    packed: (flags & PACKED) > 0,
    fresh: bytes.readUInt32BE(11),
    stale: bytes.readUInt32BE(15),
    error: bytes.readUInt32BE(19),
    length: bytes.readUIntBE(23, 6),
    ...{ table, structures, chunks, tags, body },
    size: isChunked ? size : body.length,
  }
}
