/** Checks that a value is one that a cache can hold, and estimates what it takes in memory, in one walk. */
import { types } from 'node:util'
import { checkWellFormed } from '../../values/encoding/encoding.ts'
import { MillpondError } from '../../values/errors/errors.ts'

/** Deeper than any real value; a circular reference gets here too. */
const MAX_LEVELS = 200

/** What V8 takes, rounded up: a field of an object or array, and the heads of what is allocated apart. */
const FIELD = 8
const HEAD = 24

/**
 * Bytes, roughly and rather too many than too few.
 * @throws PayloadNotEncodable
 */
export function sizeOfValue(value: unknown): number {
  const size = sizeOf(value, 0)
  if (Number.isNaN(size)) checkWellFormed(value, 'the value')
  return size
}

/** NaN: some text in it is ill-formed. Where, a walk of its own finds out, so that this one need not carry the path along. */
function sizeOf(value: unknown, level: number): number {
  switch (typeof value) {
    case 'string':
      // One byte per unit where all are Latin-1, two otherwise: that would take a look at each.
      return value.isWellFormed() ? HEAD + 2 * value.length : Number.NaN
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 30 ? 0 : 16
    case 'boolean':
    case 'undefined':
      return 0
    case 'bigint':
      return value >= -(2n ** 63n) && value < 2n ** 64n ? HEAD : refuse('an integer over 64 bits')
    case 'object':
      return value === null ? 0 : sizeOfObject(value, level)
    default:
      return refuse(`a ${typeof value}`)
  }
}

function sizeOfObject(value: object, level: number): number {
  if (level === MAX_LEVELS) return refuse(`more than ${MAX_LEVELS} levels, or refers to itself`)
  let bytes = HEAD
  if (Array.isArray(value)) {
    for (const item of value) bytes += FIELD + sizeOf(item, level + 1)
    return bytes
  }
  if (types.isUint8Array(value)) return 100 + value.byteLength
  if (types.isDate(value)) return Number.isNaN(value.getTime()) ? refuse('an invalid Date') : 100
  const prototype: unknown = Object.getPrototypeOf(value)
  // Above the prototype of a plain object, of any realm, there is nothing.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    return refuse(`an object of a class, ${Object.prototype.toString.call(value).slice(8, -1)}`)
  }
  for (const key in value) {
    // MessagePack's readers rename it.
    if (key === '__proto__') return refuse('a member named __proto__')
    if (!Object.hasOwn(value, key)) continue
    bytes += key.isWellFormed() ? FIELD + sizeOf(value[key as keyof typeof value], level + 1) : Number.NaN
  }
  return bytes
}

function refuse(reason: string): never {
  throw new MillpondError(
    'PayloadNotEncodable',
    `the value cannot be cached: it holds ${reason}. Use what JSON has, Uint8Array, Date and bigint`,
  )
}
