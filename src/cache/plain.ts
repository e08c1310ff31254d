/**
 * Values as other programs keep them in Redis: under the key as it is, without a head. For migration from such a cache and for
 * comparison; there is neither memory nor single flight.
 */

import type { Client } from '../stores/redis-client/settings.ts'
import { type Duration, kindOf, LONGEST_TIMER, milliseconds } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions } from '../values/options.ts'
import { errorSummary, safeText } from '../values/safe-error.ts'
import { checkKey } from './names.ts'
import type { RedisLayer } from './redis-layer.ts'

/** Between nested names in a flattened hash. */
const SEPARATOR = '.'
const MAX_LEVELS = 50

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

function undecodable(reason: string, cause?: unknown): MillpondError {
  return new MillpondError('PayloadNotDecodable', `the value cannot be read: ${reason}`, { cause })
}

function isNesting(value: unknown): value is Nesting {
  if (typeof value !== 'object' || value === null) return false
  return Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]'
}

/** Names and texts in turn. @throws PayloadNotEncodable */
export function flattened(value: unknown, nested: boolean): string[] {
  if (!isNesting(value)) return refuse(`${kindOf(value)} and no names`)
  const words: string[] = []
  const walk = (at: Nesting, prefix: string, depth: number): void => {
    if (depth > MAX_LEVELS) refuse(`more than ${MAX_LEVELS} levels, or refers to itself`)
    for (const [name, item] of Object.entries(at)) {
      if (item === undefined) continue
      if (nested && (name.includes(SEPARATOR) || name === ''))
        refuse('a name that is empty or has a dot, which would be taken apart')
      if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean' || item === null) {
        words.push(prefix + name, String(item))
      } else if (nested && isNesting(item)) walk(item, `${prefix}${name}${SEPARATOR}`, depth + 1)
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
    const names = path.split(SEPARATOR)
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

/** How one encoding reads and writes. */
interface Coding<Value> {
  read(client: Client, name: string): Promise<Value | undefined>
  /** Checks the value before anything is sent. @returns what sends it; without a time it does not expire */
  writer(value: unknown): (client: Client, name: string, ttl: number | undefined) => Promise<unknown>
}

function texts<Value>(write: (value: unknown) => string, read: (text: string) => Value): Coding<Value> {
  return {
    read: async (client, name) => {
      const text = await client.get(name)
      return text === null ? undefined : read(text)
    },
    writer: (value) => {
      const text = write(value)
      return (client, name, ttl) => (ttl === undefined ? client.set(name, text) : client.set(name, text, 'PX', ttl))
    },
  }
}

function hashes<Value>(nested: boolean, read: (fields: Fields) => Value): Coding<Value> {
  return {
    read: async (client, name) => {
      const fields = await client.hgetall(name)
      return Object.keys(fields).length === 0 ? undefined : read(fields)
    },
    writer: (value) => {
      const words = flattened(value, nested)
      // In one transaction, so that no reader sees a mixture of the old and the new.
      return async (client, name, ttl) => {
        const transaction = client.multi()
        transaction.del(name).hset(name, ...words)
        if (ttl !== undefined) transaction.pexpire(name, ttl)
        const replies = await transaction.exec()
        for (const [error] of replies ?? [[new Error('Connection is closed.')]]) if (error) throw error
      }
    },
  }
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    throw new MillpondError('PayloadNotEncodable', `the value is none for JSON: ${errorSummary(error)}`)
  }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw undecodable(safeText(cause), cause)
  }
}

export const CODINGS = {
  string: texts(
    (value) => (typeof value === 'string' ? value : refuse(`${kindOf(value)} instead of a text`)),
    (text) => text,
  ),
  json: texts(toJson, fromJson),
  hash: hashes(false, (fields) => fields),
  flat: hashes(true, unflattened),
}

export function plain<Value>(redis: RedisLayer, { read, writer }: Coding<Value>): Plain<Value> {
  const rules = { ttl: (value: unknown) => milliseconds(value, 'ttl', 1, LONGEST_TIMER) > 0 }
  return {
    get: async (key) => {
      const name = checkKey(key)
      return redis.call((client) => read(client, name))
    },
    set: async (key, value, options) => {
      const name = checkKey(key)
      const { ttl } = checkOptions<PlainOptions>(options, rules, 'set')
      const write = writer(value)
      await redis.call((client) => write(client, name, ttl === undefined ? undefined : milliseconds(ttl, 'ttl')))
    },
    delete: async (key) => {
      const name = checkKey(key)
      return (await redis.call((client) => client.unlink(name))) === 1
    },
  }
}
