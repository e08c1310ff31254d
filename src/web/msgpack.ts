/** MessagePack in bodies and answers. */
import { isUtf8 } from 'node:buffer'
import { Packr } from 'msgpackr'
import { MAX_DEPTH, malformed } from './plain.ts'

const packr = Object.assign(new Packr({ useRecords: false, variableMapSize: true, mapsAsObjects: true }), {
  // Integers of 64 bits come as numbers where a number holds them: many encoders write every integer that wide.
  // The unpacker knows this setting, its types do not.
  int64AsType: 'auto',
})

export function pack(value: unknown): Uint8Array {
  return packr.pack(value)
}

/** @throws Refusal */
export function unpack(bytes: Uint8Array): unknown {
  check(bytes)
  return packr.unpack(bytes)
}

/** How many bytes follow the first one, for types of a fixed size. */
const FIXED: Readonly<Record<number, number>> = {
  ...{ 192: 0, 194: 0, 195: 0, 202: 4, 203: 8 },
  ...{ 204: 1, 205: 2, 206: 4, 207: 8, 208: 1, 209: 2, 210: 4, 211: 8 },
}
const PROTO = '__proto__'

/**
 * Walks the bytes before they are unpacked. The unpacker reserves room for an array as long as its head claims, so that a few nested heads
 * of five bytes could claim all memory there is; it renames `__proto__`; and it knows extensions that are no payload.
 *
 * What a head claims is never believed: each item must be there, and takes a byte at least. A frame is an open array or map: how many items are still to come, for a map its keys and values counted each.
 * @throws Refusal
 */
function check(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const left: number[] = [1]
  const isMap: boolean[] = [false]
  let at = 0

  const length = (size: number): number => {
    const from = at
    at += size
    if (at > bytes.length) throw malformed('it ends too early')
    return size === 1 ? view.getUint8(from) : size === 2 ? view.getUint16(from) : view.getUint32(from)
  }
  const skip = (size: number): number => {
    const from = at
    at += size
    if (at > bytes.length) throw malformed('it ends too early')
    return from
  }
  const text = (size: number, isKey: boolean): void => {
    const part = bytes.subarray(skip(size), at)
    if (!isUtf8(part)) throw malformed('it holds text that is not UTF-8')
    if (isKey && size === PROTO.length && String.fromCharCode(...part) === PROTO) {
      throw malformed('it has a key named __proto__')
    }
  }
  const open = (items: number, map: boolean): void => {
    if (left.length > MAX_DEPTH) throw malformed(`it is nested deeper than ${MAX_DEPTH} levels`)
    left.push(items)
    isMap.push(map)
  }

  while (left.length > 0) {
    const frame = left.length - 1
    const items = left[frame] ?? 0
    if (items === 0) {
      left.pop()
      isMap.pop()
      continue
    }
    left[frame] = items - 1
    const isKey = isMap[frame] === true && items % 2 === 0
    const type = length(1)
    const isText = (type >= 0xa0 && type <= 0xbf) || (type >= 0xd9 && type <= 0xdb)
    if (isKey && !isText) throw malformed('it has a key that is not text')
    if (type <= 0x7f || type >= 0xe0) continue
    if (type <= 0x8f) open((type & 0x0f) * 2, true)
    else if (type <= 0x9f) open(type & 0x0f, false)
    else if (type <= 0xbf) text(type & 0x1f, isKey)
    else if (type >= 0xd9 && type <= 0xdb) text(length(1 << (type - 0xd9)), isKey)
    else if (type >= 0xc4 && type <= 0xc6) skip(length(1 << (type - 0xc4)))
    else if (type === 0xdc || type === 0xdd) open(length(type === 0xdc ? 2 : 4), false)
    else if (type === 0xde || type === 0xdf) open(length(type === 0xde ? 2 : 4) * 2, true)
    else {
      const size = FIXED[type]
      if (size === undefined) throw malformed('it holds an extension type, or the byte 0xc1')
      skip(size)
    }
  }
  if (at < bytes.length) throw malformed('something follows its end')
}
