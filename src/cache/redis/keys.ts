/** The rules of a cache's keys and tags, and the keys of Redis that they become: contract/cache/README.md. */

import { MillpondError } from '../../values/errors/errors.ts'
import { shown } from '../../values/time/duration.ts'

const MAX_KEY_BYTES = 1024
const MAX_TAG_BYTES = 255
/** Most tags of a value: each is looked at with every read. */
const MAX_TAGS = 32

function checkText(value: unknown, what: string, most: number): string {
  const fits =
    typeof value === 'string' &&
    value.length > 0 &&
    value.isWellFormed() &&
    (value.length * 3 <= most || Buffer.byteLength(value) <= most)
  if (fits) return value
  const message = `${what} is a text of 1 to ${most} bytes in UTF-8, without lone surrogates; got ${shown(value)}`
  throw new MillpondError('InvalidName', message)
}

/** @throws InvalidName */
export const checkKey = (key: unknown): string => checkText(key, "a cache's key", MAX_KEY_BYTES)

/** @throws InvalidName */
export const checkTag = (tag: unknown): string => checkText(tag, 'a tag', MAX_TAG_BYTES)

/** @throws InvalidName, InvalidOption */
export function checkTags(tags: unknown): readonly string[] {
  if (!Array.isArray(tags) || tags.length > MAX_TAGS) {
    throw new MillpondError('InvalidOption', `tags must be an array of at most ${MAX_TAGS} texts; got ${shown(tags)}`)
  }
  return [...new Set(tags.map(checkTag))]
}

/** Where things are in Redis. All keys of one value have the same hash tag, and so the same hash slot of a cluster. */
export class CacheKeys {
  readonly #prefix: string
  /** What the keys of values, and those of tags, begin with. */
  readonly values: string
  readonly tags: string
  /** The list of record structures. */
  readonly structures: string
  /** The channel that tells waiting processes of a released lock. */
  readonly channel: string

  constructor(prefix: string) {
    this.#prefix = prefix
    this.values = `${prefix}:v:{`
    this.tags = `${prefix}:t:`
    this.structures = `${prefix}:s`
    this.channel = `${prefix}:f`
  }

  value(key: string): string {
    return `${this.values}${escaped(key)}}`
  }

  /** Of the load of a key. */
  lock(key: string): string {
    return `${this.#prefix}:l:{${escaped(key)}}`
  }

  /** To be followed by the version in hexadecimal, a colon and the number of the chunk. */
  chunks(key: string): string {
    return `${this.#prefix}:c:{${escaped(key)}}:`
  }

  /** The cache's key of a value's, or the tag of a tag's; undefined for any other. */
  parse(name: string): { key?: string; tag?: string } | undefined {
    if (name.startsWith(this.tags)) return { tag: name.slice(this.tags.length) }
    if (!name.startsWith(this.values) || !name.endsWith('}')) return undefined
    return { key: name.slice(this.values.length, -1).replaceAll('%7D', '}').replaceAll('%25', '%') }
  }
}

/** A hash tag ends at the first closing brace. */
function escaped(key: string): string {
  return key.includes('}') || key.includes('%') ? key.replaceAll('%', '%25').replaceAll('}', '%7D') : key
}
