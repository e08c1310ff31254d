/** Whether bytes are plain MessagePack, as every language reads it: no extensions, no references, keys that are text. */
import { isUtf8 } from 'node:buffer'

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
 * What a head claims is never believed: each item must be there, and takes a byte at least. A frame is an open array or
 * map: how many items are still to come, for a map its keys and values counted each.
 * @param maxDepth levels of arrays and maps
 * @param refusal makes the error to throw from the reason, which shows nothing of the bytes
 */
export function checkMessagePack(bytes: Uint8Array, maxDepth: number, refusal: (reason: string) => Error): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const left: number[] = [1]
  const isMap: boolean[] = [false]
  let at = 0

  const skip = (size: number): number => {
    const from = at
    at += size
    if (at > bytes.length) throw refusal('it ends too early')
    return from
  }
  const length = (size: number): number => {
    const from = skip(size)
    return size === 1 ? view.getUint8(from) : size === 2 ? view.getUint16(from) : view.getUint32(from)
  }
  const text = (size: number, isKey: boolean): void => {
    const part = bytes.subarray(skip(size), at)
    if (!isUtf8(part)) throw refusal('it holds text that is not UTF-8')
    if (isKey && size === PROTO.length && String.fromCharCode(...part) === PROTO) {
      throw refusal('it has a key named __proto__')
    }
  }
  const open = (items: number, map: boolean): void => {
    if (left.length > maxDepth) throw refusal(`it is nested deeper than ${maxDepth} levels`)
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
    if (isKey && !isText) throw refusal('it has a key that is not text')
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
      if (size === undefined) throw refusal('it holds an extension type, or the byte 0xc1')
      skip(size)
    }
  }
  if (at < bytes.length) throw refusal('something follows its end')
}
