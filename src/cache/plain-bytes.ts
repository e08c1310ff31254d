/**
 * Makes the bytes in values plain `Uint8Array`s. Loaders and MessagePack give `Buffer`s, from which callers could tell
 * where a value comes from.
 */

import { types } from 'node:util'
/**
 * The value itself where it holds no subclass of Uint8Array; else a copy of what leads to them.
 * @param value of at most 200 levels: see `sizeOfValue`
 */
export function withPlainBytes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (types.isUint8Array(value)) {
    const isPlain = Object.getPrototypeOf(value) === Uint8Array.prototype
    return isPlain ? value : new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item = withPlainBytes(value[index])
      if (item !== value[index]) {
        copy ??= [...value]
        copy[index] = item
      }
    }
    return copy ?? value
  }
  if (types.isDate(value)) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, item] of Object.entries(value)) {
    const plain = withPlainBytes(item)
    if (plain !== item) {
      copy ??= { ...value }
      copy[name] = plain
    }
  }
  return copy ?? value
}
