/**
 * Values as other programs keep them in Redis: under the key as it is, without a head. For migration from such a cache and for
 * comparison; there is neither memory nor single flight.
 */
import { type Duration, kindOf, LONGEST_TIMER, milliseconds } from '../duration.ts'
import { MillpondError } from '../errors.ts'
import { checkOptions } from '../options.ts'
import { safeText, sketch } from '../safe-error.ts'
import { checkKey } from './names.ts'
import type { RedisSide } from './redis.ts'

/** Of nested names in a flattened hash. */
const DOT = '.'
const DEEPEST = 50

export type Encoding = 'string' | 'json' | 'hash' | 'flat'

export interface PlainOptions {
  /** Unless given it does not expire. */
  ttl?: Duration
}

export interface Plain<Value> {
  /** @throws PayloadNotDecodable, StoreUnavailable, StoreFailed: a value of another type */
  get(key: string): Promise<Value | undefined>
  /** @throws PayloadNotEncodable, StoreUnavailable, StoreFull */
  set(key: string, value: Value, options?: PlainOptions): Promise<void>
  /** @returns whether there was one */
  delete(key: string): Promise<boolean>
}

/** As a hash has it: all texts. */
export type Fields = Record<string, string>
/** What a flattened hash says, nested again; its leaves are texts. */
export interface Nested {
  [name: string]: string | Nested
}
export type Leaf = string | number | boolean | null | undefined
/** What a flattened hash is made of; arrays are objects whose names are numbers. */
export interface Nesting {
  [name: string]: Leaf | Nesting
}

function refuse(reason: string): never {
  throw new MillpondError('PayloadNotEncodable', `the value cannot be laid down as a hash: it holds ${reason}`)
}

function isNesting(value: unknown): value is Nesting {
  return (
    typeof value === 'object' &&
    value !== null &&
    (Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]')
  )
}

/** Names and texts in turn. @throws PayloadNotEncodable */
export function flattened(value: unknown, nested: boolean): string[] {
  if (!isNesting(value)) return refuse(`${kindOf(value)} and no names`)
  const words: string[] = []
  const walk = (at: Nesting, prefix: string, depth: number): void => {
    if (depth > DEEPEST) refuse(`more than ${DEEPEST} levels, or refers to itself`)
    for (const [name, item] of Object.entries(at)) {
      if (item === undefined) continue
      if (nested && (name.includes(DOT) || name === ''))
        refuse('a name that is empty or has a dot, which would be taken apart')
      if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean' || item === null) {
        words.push(prefix + name, String(item))
      } else if (nested && isNesting(item)) walk(item, `${prefix}${name}${DOT}`, depth + 1)
      else refuse(kindOf(item))
    }
  }
  walk(value, '', 0)
  if (words.length === 0) refuse('nothing, and Redis has no empty hashes')
  return words
}

/** @throws PayloadNotDecodable */
export function unflattened(fields: Fields): Nested {
  const root: Nested = Object.create(null)
  for (const [path, text] of Object.entries(fields)) {
    const names = path.split(DOT)
    const last = names.pop() ?? ''
    let at = root
    for (const name of names) {
      const next = at[name] ?? Object.create(null)
      if (typeof next === 'string') throw undecodable('a name is below a text')
      at[name] = next
      at = next
    }
    if (at[last] !== undefined) throw undecodable('a name is there twice')
    at[last] = text
  }
  return root
}

function undecodable(reason: string, cause?: unknown): MillpondError {
  return new MillpondError('PayloadNotDecodable', `the value cannot be read: ${reason}`, { cause })
}

export function plainString(redis: RedisSide): Plain<string> {
  return texts(redis, {
    write: (value) => (typeof value === 'string' ? value : refuse(`${kindOf(value)} instead of a text`)),
    read: (text) => text,
  })
}

export function plainJson(redis: RedisSide): Plain<unknown> {
  return texts(redis, {
    write: (value) => {
      try {
        return JSON.stringify(value) ?? 'null'
      } catch (error) {
        throw new MillpondError('PayloadNotEncodable', `the value is none for JSON: ${sketch(error)}`)
      }
    },
    read: (text): unknown => {
      try {
        return JSON.parse(text)
      } catch (cause) {
        throw undecodable(safeText(cause), cause)
      }
    },
  })
}

function texts<Value>(
  redis: RedisSide,
  { write, read }: { write: (value: Value) => string; read: (text: string) => Value },
): Plain<Value> {
  return {
    get: async (key) => {
      const name = checkKey(key)
      const text = await redis.call((client) => client.get(name))
      return text === null ? undefined : read(text)
    },
    set: async (key, value, options) => {
      const name = checkKey(key)
      const ttl = ttlOf(options)
      const text = write(value)
      await redis.call((client) => (ttl === undefined ? client.set(name, text) : client.set(name, text, 'PX', ttl)))
    },
    delete: (key) => removed(redis, key),
  }
}

export function plainHash(redis: RedisSide): Plain<Readonly<Record<string, Leaf>>> {
  return {
    get: (key) => fieldsOf(redis, key),
    set: (key, value, options) => written(redis, key, flattened(value, false), options),
    delete: (key) => removed(redis, key),
  }
}

export function plainFlat(redis: RedisSide): Plain<Nesting> {
  return {
    get: async (key) => {
      const fields = await fieldsOf(redis, key)
      return fields && unflattened(fields)
    },
    set: (key, value, options) => written(redis, key, flattened(value, true), options),
    delete: (key) => removed(redis, key),
  }
}

async function fieldsOf(redis: RedisSide, key: string): Promise<Fields | undefined> {
  const name = checkKey(key)
  const fields = await redis.call((client) => client.hgetall(name))
  return Object.keys(fields).length === 0 ? undefined : fields
}

/** In one transaction, so that no reader sees a mixture of the old and the new. */
async function written(redis: RedisSide, key: string, words: string[], options?: PlainOptions): Promise<void> {
  const name = checkKey(key)
  const ttl = ttlOf(options)
  await redis.call(async (client) => {
    const transaction = client
      .multi()
      .del(name)
      .hset(name, ...words)
    if (ttl !== undefined) transaction.pexpire(name, ttl)
    const replies = await transaction.exec()
    for (const [error] of replies ?? [[new Error('Connection is closed.')]]) if (error) throw error
  })
}

async function removed(redis: RedisSide, key: string): Promise<boolean> {
  const name = checkKey(key)
  return (await redis.call((client) => client.unlink(name))) === 1
}

function ttlOf(options: PlainOptions | undefined): number | undefined {
  const rules = { ttl: (value: unknown) => milliseconds(value, 'ttl', 1, LONGEST_TIMER) > 0 }
  const { ttl } = checkOptions<PlainOptions>(options, rules, 'set')
  return ttl === undefined ? undefined : milliseconds(ttl, 'ttl')
}
