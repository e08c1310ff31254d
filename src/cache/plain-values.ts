/**
 * Values as other programs keep them in Redis (`cache.plain`): under the key as it is, without a head. For migration from such a cache and
 * for comparison; there is neither memory nor single flight.
 */
import type { Client } from '../stores/redis-client/settings.ts'
import { type Duration, kindOf, milliseconds } from '../values/duration.ts'
import { checkWellFormed } from '../values/encoding.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions, isDuration } from '../values/options.ts'
import { safeText } from '../values/safe-error.ts'
import { toJson } from './redis/codec.ts'
import { checkKey } from './redis/keys.ts'
import type { RedisLayer } from './redis/redis-layer.ts'

/** Between nested names in a flattened hash. */
const SEPARATOR = '.'
const MAX_LEVELS = 50

/** What each encoding holds. */
interface Values {
  string: string
  json: unknown
  hash: Readonly<Record<string, Leaf>>
  flat: Nesting
}
export type Encoding = keyof Values

export interface PlainOptions {
  /** Time to live, from 1 ms to 24 days. Unless given the value does not expire. */
  ttl?: Duration
}

export interface Plain<Value> {
  /**
   * The value, or `undefined`. The leaves of `hash` and `flat` come back as texts.
   * @throws InvalidName, PayloadNotDecodable, StoreUnavailable, StoreFailed: a value of another type, Closed
   */
  get(key: string): Promise<Value | undefined>
  /** @throws InvalidName, InvalidOption, PayloadNotEncodable, StoreUnavailable, StoreFull, StoreFailed, Closed */
  set(key: string, value: Value, options?: PlainOptions): Promise<void>
  /** @returns whether there was one @throws InvalidName, StoreUnavailable, StoreFailed, Closed */
  delete(key: string): Promise<boolean>
}

export type Leaf = string | number | boolean | null | undefined
/** What a flattened hash is made of; arrays are objects whose names are numbers. */
export interface Nesting {
  [name: string]: Leaf | Nesting
}

function refuse(reason: string): never {
  throw new MillpondError('PayloadNotEncodable', `the value cannot be laid down as a hash: it holds ${reason}`)
}

const undecodable = (reason: string, cause?: unknown): MillpondError =>
  new MillpondError('PayloadNotDecodable', `the value cannot be read: ${reason}`, { cause })

function isNesting(value: unknown): value is Nesting {
  if (typeof value !== 'object' || value === null) return false
  return Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]'
}

/** Names and texts in turn. @throws PayloadNotEncodable */
export function flattened(value: unknown, nested: boolean): string[] {
  if (!isNesting(value)) return refuse(`${kindOf(value)} and no names`)
  const words: string[] = []
  const walk = (at: Nesting, prefix: string, level: number): void => {
    if (level > MAX_LEVELS) refuse(`more than ${MAX_LEVELS} levels, or refers to itself`)
    for (const [name, item] of Object.entries(at)) {
      if (item === undefined) continue
      if (nested && (name.includes(SEPARATOR) || name === ''))
        refuse('a name that is empty or has a dot, which would be taken apart')
      if (['string', 'number', 'boolean'].includes(typeof item) || item === null) {
        words.push(prefix + name, String(item))
      } else if (nested && isNesting(item)) walk(item, `${prefix}${name}${SEPARATOR}`, level + 1)
      else refuse(kindOf(item))
    }
  }
  walk(value, '', 0)
  if (words.length === 0) refuse('nothing, and Redis has no empty hashes')
  return words
}

/** Its leaves are texts. @throws PayloadNotDecodable */
export function unflattened(fields: Readonly<Record<string, string>>): Nesting {
  const root: Nesting = Object.create(null)
  for (const [path, text] of Object.entries(fields)) {
    const names = path.split(SEPARATOR)
    const last = names.pop() ?? ''
    let at = root
    for (const name of names) {
      at[name] ??= Object.create(null)
      const next = at[name]
      if (!isNesting(next)) throw undecodable('a name is below a text')
      at = next
    }
    if (at[last] !== undefined) throw undecodable('a name is there twice')
    at[last] = text
  }
  return root
}

type Command = [string, ...(string | number)[]]

/** How one encoding is read and written. */
interface Coding<Value> {
  read(client: Client, name: string): Promise<Value | undefined>
  /** @returns the commands that write it, in one transaction @throws PayloadNotEncodable */
  write(name: string, value: unknown, ttl: number | undefined): readonly Command[]
}

const inText = <Value>(write: (value: unknown) => string, read: (text: string) => Value): Coding<Value> => ({
  read: async (client, name) => {
    const text = await client.get(name)
    return text === null ? undefined : read(text)
  },
  write: (name, value, ttl) => [['set', name, write(value), ...(ttl === undefined ? [] : ['PX', ttl])]],
})

const inHash = <Value>(nested: boolean, read: (fields: Record<string, string>) => Value): Coding<Value> => ({
  read: async (client, name) => {
    const fields = await client.hgetall(name)
    return Object.keys(fields).length === 0 ? undefined : read(fields)
  },
  write: (name, value, ttl) => [
    ['del', name],
    ['hset', name, ...flattened(value, nested)],
    ...(ttl === undefined ? [] : ([['pexpire', name, ttl]] as const satisfies Command[])),
  ],
})

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw undecodable(safeText(cause), cause)
  }
}

const CODINGS: { [E in Encoding]: Coding<Values[E]> } = {
  string: inText(
    (value) => (typeof value === 'string' ? value : refuse(`${kindOf(value)} instead of a text`)),
    (text) => text,
  ),
  json: inText((value) => toJson(value).toString(), fromJson),
  hash: inHash(false, (fields) => fields),
  flat: inHash(true, unflattened),
}

async function send(client: Client, commands: readonly Command[]): Promise<void> {
  const [first, ...more] = commands
  if (first !== undefined && more.length === 0) {
    await client.call(...first)
    return
  }
  // In one transaction, so that no reader sees a mixture of the old and the new.
  const replies = await client.multi(commands.map((command) => [...command])).exec()
  for (const [error] of replies ?? [[new Error('Connection is closed.')]]) if (error) throw error
}

export const isEncoding = (encoding: unknown): encoding is Encoding => Object.hasOwn(CODINGS, String(encoding))

export function plainValues<E extends Encoding>(redis: RedisLayer, encoding: E): Plain<Values[E]> {
  const { read, write } = CODINGS[encoding]
  return {
    get: async (key) => {
      const name = checkKey(key)
      return redis.call((client) => read(client, name))
    },
    set: async (key, value, options) => {
      const name = checkKey(key)
      const { ttl } = checkOptions<PlainOptions>(options, { ttl: isDuration() }, 'set')
      const commands = write(name, value, ttl === undefined ? undefined : milliseconds(ttl, 'ttl'))
      // Behind `write`, which refuses what refers to itself. Redis would get another text, as UTF-8 has no half of a pair.
      checkWellFormed(value, 'the value')
      await redis.call((client) => send(client, commands))
    },
    delete: async (key) => {
      const name = checkKey(key)
      return (await redis.call((client) => client.unlink(name))) === 1
    },
  }
}
