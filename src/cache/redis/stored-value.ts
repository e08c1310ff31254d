/**
 * A value as it lies in Redis: a head, and the body behind it unless that is in chunks. contract/cache/README.md lays
 * out the head, with cases in contract/vectors/cache.json.
 *
 * The key expires when the longer of `stale` and `error` is over, so a reader learns the age from what it has left to live, and no two
 * clocks are compared.
 */

/** By the lowest two bits of the flags. */
const KINDS = ['msgpack', 'records', 'bytes'] as const

export interface Lives {
  /** Milliseconds for which it is good. */
  fresh: number
  /** Milliseconds after that for which it is answered while a new one is made. */
  stale: number
  /** Milliseconds after `fresh` for which it is answered if the loader fails. */
  error: number
}

export interface Encoded {
  kind: (typeof KINDS)[number]
  /** Which list of record structures, and how many of its structures must be known. 0 unless `records`. */
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

export interface StoredValue extends Encoded, Lives {
  /** Eight bytes as Latin-1: random, and new with each write. */
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
/** The first byte of a head. MessagePack never begins with it. */
const MAGIC = 0xc1
const FORMAT = 1
const PACKED = 4
const CHUNKED = 8

/** How long Redis keeps it, in ms. */
export const lifeOf = ({ fresh, stale, error }: Lives): number => fresh + Math.max(stale, error)

/** @param start at least the first `START_BYTES` */
export const versionOf = (start: Buffer): string => start.toString('latin1', VERSION_AT, START_BYTES)

function unsigned(value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

export function headOf({ kind, version, tags, chunks, ...stored }: StoredValue): Buffer {
  const flags = KINDS.indexOf(kind) | (stored.packed ? PACKED : 0) | (chunks > 0 ? CHUNKED : 0)
  const texts = tags.flatMap(({ name, marker }) => {
    const text = Buffer.from(name)
    return [unsigned(text.length, 2), text, Buffer.from(marker, 'latin1')]
  })
  return Buffer.concat([
    Buffer.of(MAGIC, FORMAT),
    Buffer.from(version, 'latin1'),
    unsigned(flags, 1),
    ...[unsigned(stored.fresh, 4), unsigned(stored.stale, 4), unsigned(stored.error, 4), unsigned(stored.length, 6)],
    ...(kind === 'records' ? [unsigned(stored.table, 4), unsigned(stored.structures, 2)] : []),
    ...(chunks > 0 ? [unsigned(chunks, 2), unsigned(stored.size, 6)] : []),
    ...[unsigned(tags.length, 1), ...texts],
  ])
}

/** @throws RangeError, TypeError where it is no value of ours */
export function parseStored(bytes: Buffer): StoredValue {
  if (bytes[0] !== MAGIC) throw new TypeError('it is no value of this cache')
  if (bytes[1] !== FORMAT) throw new TypeError(`it has format ${bytes[1]}, of which this version knows nothing`)
  let at = START_BYTES
  const next = (size: number): number => {
    at += size
    return bytes.readUIntBE(at - size, size)
  }
  const flags = next(1)
  const kind = KINDS[flags & 3]
  if (kind === undefined || flags >= 2 * CHUNKED) throw new TypeError(`its flags are ${flags}`)
  const [fresh, stale, error, length] = [next(4), next(4), next(4), next(6)]
  const [table, structures] = kind === 'records' ? [next(4), next(2)] : [0, 0]
  const isChunked = (flags & CHUNKED) > 0
  const [chunks, chunked] = isChunked ? [next(2), next(6)] : [0, 0]
  if (isChunked && chunks === 0) throw new TypeError('it has no chunks')
  const tags = Array.from({ length: next(1) }, () => {
    const end = next(2) + at
    if (end + VERSION_BYTES > bytes.length) throw new RangeError('it ends within its tags')
    const name = bytes.toString('utf8', at, end)
    at = end + VERSION_BYTES
    return { name, marker: bytes.toString('latin1', end, at) }
  })
  const body = isChunked ? Buffer.alloc(0) : bytes.subarray(at)
  const size = isChunked ? chunked : body.length
  const lives = { fresh, stale, error }
  const packed = (flags & PACKED) > 0
  return { version: versionOf(bytes), kind, packed, ...lives, length, table, structures, chunks, tags, body, size }
}
