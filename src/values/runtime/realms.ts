/**
 * What values are, also those of another realm: of a `vm` context, or of a test of Jest, whose globals are not those of Node's own modules.
 * `instanceof` knows the classes of one realm alone. Nothing here throws, whatever a proxy does.
 */
import { types } from 'node:util'

export function isError(value: unknown): value is Error {
  if (typeof value !== 'object' || value === null) return false
  try {
    return value instanceof Error || types.isNativeError(value) || hasTag(value, 'DOMException')
  } catch {
    return false
  }
}

/** For classes of the platform, such as URL. */
export function hasTag(value: unknown, tag: string): boolean {
  try {
    return Object.prototype.toString.call(value) === `[object ${tag}]`
  } catch {
    return false
  }
}
