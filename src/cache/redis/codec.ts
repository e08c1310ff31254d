/** Values to bytes and back. Bytes stay what they are; all else is MessagePack, with shared structures where there is a table. */

import { promisify, types } from 'node:util'
import zlib from 'node:zlib'
import { Packr } from 'msgpackr'
import { MillpondError } from '../../values/errors/errors.ts'
import { errorSummary, safeText } from '../../values/errors/safe-error.ts'
import { isError } from '../../values/runtime/realms.ts'
import { sizeOfValue } from '../memory/value-size.ts'
import { withPlainBytes } from '../plain-bytes.ts'
import type { RecordStructures } from './record-structures.ts'
import type { Encoded } from './stored-value.ts'

/** Below it zstd's 25 µs to pack and 20 µs to unpack cost more than the bytes that it saves: see docs/cache.md. */
const MIN_COMPRESSED = 1024
/** A body is stored compressed only if its compressed size is at most this share of the original. */
const MAX_RATIO = 0.9
/**
 * How many times its own size a packed body may unpack to. Otherwise a few kilobytes in Redis could take all memory of a reader.
 * Real values stay below. One that zstd makes even smaller is padded, so that every reader takes it.
 */
const MAX_GROWTH = 64
/** Begins a frame that zstd steps over: four bytes, then its size, little-endian. */
const SKIPPED_FRAME = 0x184d2a50
const SKIPPED_FRAME_HEAD = 8
/** From here on zstd runs in libuv's threads: a hop costs 50 µs, and the event loop would stand still for longer. */
const MIN_THREADED = 256 * 1024
/** A body as large as this is only compressed if its beginning yields. */
const MIN_SAMPLED = 4 * 1024 * 1024
const SAMPLE_BYTES = 256 * 1024

/** Level 1: of records, whose numbers differ, the higher ones make no less for three times the work. */
const params = { [zlib.constants.ZSTD_c_compressionLevel]: 1 }
const compress = promisify<Buffer, { params: Record<number, number> }, Buffer>(zlib.zstdCompress)
const decompress = promisify<Buffer, { maxOutputLength: number }, Buffer>(zlib.zstdDecompress)

/** Plain MessagePack that every language reads. No references: a few bytes of them stand for a value that takes years to walk. */
const plain = new Packr({
  useRecords: false,
  variableMapSize: true,
  mapsAsObjects: true,
  int64AsType: 'bigint',
  structuredClone: false,
})

export class Codec {
  readonly #structures: RecordStructures | undefined
  readonly #maxBytes: number
  readonly #onBroken: (error: unknown) => void

  /**
   * @param structures none: plain MessagePack
   * @param maxBytes of a body, uncompressed
   * @param onBroken called with errors of structures that cannot be used: values are then written without
   */
  constructor(
    structures: RecordStructures | undefined,
    maxBytes: number,
    onBroken: (error: unknown) => void = () => {},
  ) {
    this.#structures = structures
    this.#maxBytes = maxBytes
    this.#onBroken = onBroken
  }

  /** @throws PayloadNotEncodable, PayloadTooLarge, and what the structures' list throws */
  async encode(value: unknown): Promise<Encoded> {
    const { body, ...kind } = await this.#serialized(value)
    const { length } = body
    if (length > this.#maxBytes) {
      const message = `the value takes ${length} bytes, over the limit of ${this.#maxBytes}: raise maxValue`
      throw new MillpondError('PayloadTooLarge', message)
    }
    const packed = await compressed(body)
    return { ...kind, packed: packed !== undefined, length, body: packed ?? body }
  }

  async #serialized(value: unknown): Promise<Omit<Encoded, 'packed' | 'length'>> {
    if (types.isUint8Array(value)) {
      const body = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
      return { kind: 'bytes', table: 0, structures: 0, body }
    }
    if (this.#structures !== undefined && typeof value === 'object' && value !== null) {
      try {
        return { kind: 'records', ...(await this.#structures.pack(value)) }
      } catch (error) {
        if (!isError(error) || !/^(Type|Syntax)Error$/.test(error.name)) throw notEncodable(error)
        this.#onBroken(error)
      }
    }
    return { kind: 'msgpack', table: 0, structures: 0, body: toMessagePack(value) }
  }

  /** @throws PayloadNotDecodable, and what the structures' list throws */
  async decode(encoded: Encoded): Promise<unknown> {
    try {
      const body = await this.#unpacked(encoded)
      if (encoded.kind === 'bytes') return withPlainBytes(body)
      const value: unknown =
        encoded.kind === 'msgpack' ? plain.unpack(body) : await this.#structures?.unpack({ ...encoded, body })
      // Extensions and bytes that are not MessagePack's own come out as objects of classes.
      sizeOfValue(value)
      if (body.includes(PROTO) && hasRenamed(value)) throw new TypeError(`it holds a member named ${PROTO}`)
      return withPlainBytes(value)
    } catch (cause) {
      if (cause instanceof MillpondError && cause.code !== 'PayloadNotEncodable') throw cause
      throw new MillpondError('PayloadNotDecodable', `the cached value cannot be read: ${safeText(cause)}`, { cause })
    }
  }

  async #unpacked({ packed, length, body }: Encoded): Promise<Buffer> {
    if (length > this.#maxBytes) throw new RangeError(`it says that it takes ${length} bytes`)
    if (!packed) {
      if (body.length !== length) throw new RangeError(`it takes ${body.length} bytes instead of ${length}`)
      return body
    }
    if (length > body.length * MAX_GROWTH) {
      throw new RangeError(`it says that ${body.length} bytes unpack to ${length}`)
    }
    // One more than it says, so that an honest one is never at the limit, and a bomb goes no further.
    const limit = { maxOutputLength: length + 1 }
    const whole = length < MIN_THREADED ? zlib.zstdDecompressSync(body, limit) : await decompress(body, limit)
    if (whole.length !== length) throw new RangeError(`it takes ${whole.length} bytes instead of ${length}`)
    return whole
  }
}

/** msgpackr reads `__proto__` as `__proto_`. */
const PROTO = '__proto__'

function hasRenamed(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || types.isUint8Array(value)) return false
  return Object.entries(value).some(([name, item]) => name === '__proto_' || hasRenamed(item))
}

/** undefined where it does not pay. */
async function compressed(body: Buffer): Promise<Buffer | undefined> {
  const { length } = body
  if (length < MIN_COMPRESSED) return undefined
  const pays = (whole: Buffer, packed: Buffer): boolean => packed.length <= whole.length * MAX_RATIO
  const sample = body.subarray(0, SAMPLE_BYTES)
  if (length >= MIN_SAMPLED && !pays(sample, zlib.zstdCompressSync(sample, { params }))) return undefined
  const packed = length < MIN_THREADED ? zlib.zstdCompressSync(body, { params }) : await compress(body, { params })
  return pays(body, packed) ? padded(packed, Math.ceil(length / MAX_GROWTH)) : undefined
}

/** At least so many bytes. */
function padded(packed: Buffer, least: number): Buffer {
  if (packed.length >= least) return packed
  const padding = Buffer.alloc(Math.max(SKIPPED_FRAME_HEAD, least - packed.length))
  padding.writeUInt32LE(SKIPPED_FRAME, 0)
  padding.writeUInt32LE(padding.length - SKIPPED_FRAME_HEAD, 4)
  return Buffer.concat([packed, padding])
}

function notEncodable(cause: unknown): MillpondError {
  if (cause instanceof MillpondError) return cause
  // A getter or a toJSON of the value may have thrown: what it says may be part of the value.
  return new MillpondError('PayloadNotEncodable', `the value cannot be cached: ${errorSummary(cause)}`)
}

/** Plain MessagePack, for clients. @throws PayloadNotEncodable */
export function toMessagePack(value: unknown): Buffer {
  try {
    return plain.pack(value)
  } catch (error) {
    throw notEncodable(error)
  }
}

/** @throws PayloadNotEncodable: a bigint, or a text longer than a string can be */
export function toJson(value: unknown): Buffer {
  try {
    return Buffer.from(JSON.stringify(value) ?? 'null')
  } catch (error) {
    throw notEncodable(error)
  }
}
