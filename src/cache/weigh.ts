/** Checks that a value is one that a cache can hold, and estimates what it takes in memory, in one walk. */
import { MillpondError } from '../values/errors.ts'

/** Deeper than any real value; a circular reference gets here too. */
const DEEPEST = 200

/** What V8 takes, rounded up: a slot of an object or array, and the heads of what is allocated apart. */
const SLOT = 8
const HEAD = 24

/**
 * Bytes, roughly and rather too many than too few.
 * @throws PayloadNotEncodable
 */
export function weigh(value: unknown): number {
  return weighed(value, 0)
}

function weighed(value: unknown, depth: number): number {
  switch (typeof value) {
    case 'string':
      // One byte per unit where all are Latin-1, two otherwise: that would take a look at each.
      return HEAD + 2 * value.length
    case 'number':
      return Number.isInteger(value) && Math.abs(value) < 2 ** 30 ? 0 : 16
    case 'boolean':
    case 'undefined':
      return 0
    case 'bigint':
      if (value < -(2n ** 63n) || value >= 2n ** 64n) return refuse('an integer over 64 bits')
      return HEAD
    case 'object':
      return value === null ? 0 : weighedObject(value, depth)
    default:
      return refuse(`a ${typeof value}`)
  }
}

function weighedObject(value: object, depth: number): number {
  if (depth === DEEPEST) return refuse(`more than ${DEEPEST} levels, or refers to itself`)
  if (Array.isArray(value)) {
    let bytes = HEAD + SLOT * value.length
    for (const item of value) bytes += weighed(item, depth + 1)
    return bytes
  }
  if (value instanceof Uint8Array) return 100 + value.byteLength
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? refuse('an invalid Date') : 100
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    return refuse(`an object of a class, ${Object.prototype.toString.call(value).slice(8, -1)}`)
  }
  let bytes = HEAD
  for (const key in value) {
    if (Object.hasOwn(value, key)) bytes += SLOT + weighed(value[key as keyof typeof value], depth + 1)
  }
  return bytes
}

function refuse(reason: string): never {
  throw new MillpondError(
    'PayloadNotEncodable',
    `the value cannot be cached: it holds ${reason}. Use what JSON has, Uint8Array, Date and bigint`,
  )
}
