/** The ways to keep the value, each as a function from a number of items to an answer's bytes. */

import { Redis } from 'ioredis'
import { Packr } from 'msgpackr'
import { Cache, type CacheOptions } from '../../src/cache/index.ts'
import { byName } from '../variants.ts'
import { flattened, unflattened } from './flat.ts'
import { type Item, items } from './items.ts'

export type Answer = string | Buffer
export type Serve = (redis: string, count: number) => Promise<() => Promise<Answer>>

export interface Variant {
  title: string
  serve: Serve
  /** One of the ways that are measured against. */
  plain?: true
  /** It keeps nothing in Redis. */
  ceiling?: true
  /** Arguments of one command grow with the items; V8 and Redis end it here. */
  most?: number
}

const KEY = 'value'

/** Makes and stores the value where it is not there. */
function stored<Kept>(
  read: (redis: Redis) => Promise<Kept | null>,
  write: (redis: Redis, value: Item[]) => Promise<unknown>,
  answer: (kept: Kept) => Answer,
): Serve {
  return async (url, count) => {
    const redis = new Redis(url)
    return async () => {
      const kept = await read(redis)
      if (kept !== null) return answer(kept)
      const value = items(count)
      await write(redis, value)
      return JSON.stringify(value)
    }
  }
}

function millpond(options: CacheOptions): Serve {
  return async (url, count) => {
    const cache = await Cache.open(url, options)
    const value = cache.wrap((size: number) => items(size), { key: (size) => `items:${size}`, ttl: '1h', stale: '1h' })
    return async () => (await value.rendered({}, count)).body ?? ''
  }
}

const packr = new Packr({ structures: [] })

/** Many fields go in several commands, in one transaction. */
async function writeHash(redis: Redis, words: string[]): Promise<void> {
  const transaction = redis.multi()
  for (let at = 0; at < words.length; at += 20_000) transaction.hset(KEY, ...words.slice(at, at + 20_000))
  await transaction.exec()
}

const readHash = async (redis: Redis): Promise<Record<string, string> | null> => {
  const fields = await redis.hgetall(KEY)
  return Object.keys(fields).length === 0 ? null : fields
}

/** What a flattened hash gives back are texts: what was a number or a boolean is made one again. */
function nested(fields: Record<string, string>): Item[] {
  return Object.values(unflattened(fields)).map((item) => {
    const { index, createdAt, nested: inner } = item as Record<string, unknown>
    const { isEven } = inner as { isEven: string }
    return { index: Number(index), createdAt: Number(createdAt), nested: { isEven: isEven === 'true' } }
  })
}

const VARIANTS = {
  constant: {
    title: 'ready bytes, no cache at all',
    ceiling: true,
    serve: async (_, count) => {
      const bytes = Buffer.from(JSON.stringify(items(count)))
      return async () => bytes
    },
  },
  string: {
    title: 'string: JSON sent on unparsed',
    plain: true,
    serve: stored(
      (redis) => redis.getBuffer(KEY),
      (redis, value) => redis.set(KEY, JSON.stringify(value)),
      (bytes) => bytes,
    ),
  },
  json: {
    title: 'JSON',
    plain: true,
    serve: stored(
      (redis) => redis.get(KEY),
      (redis, value) => redis.set(KEY, JSON.stringify(value)),
      (text) => JSON.stringify(JSON.parse(text)),
    ),
  },
  hash: {
    title: 'hash: an item per field, as JSON',
    plain: true,
    most: 100_000,
    serve: stored(
      readHash,
      (redis, value) =>
        writeHash(
          redis,
          value.flatMap((item, index) => [String(index), JSON.stringify(item)]),
        ),
      (fields) => JSON.stringify(Object.values(fields).map((text) => JSON.parse(text))),
    ),
  },
  flat: {
    title: 'flattened hash',
    plain: true,
    most: 100_000,
    serve: stored(
      readHash,
      (redis, value) => writeHash(redis, flattened(value)),
      (fields) => JSON.stringify(nested(fields)),
    ),
  },
  msgpack: {
    title: 'MessagePack, shared structures',
    plain: true,
    serve: stored(
      (redis) => redis.getBuffer(KEY),
      (redis, value) => redis.set(KEY, packr.pack(value)),
      (bytes) => JSON.stringify(packr.unpack(bytes)),
    ),
  },
  millpond: { title: 'Millpond', serve: millpond({ memory: '512mb' }) },
  distant: { title: 'Millpond, nothing kept in the process', serve: millpond({ memory: 0 }) },
} satisfies Record<string, Variant>

export type VariantName = keyof typeof VARIANTS
export const { NAMES, variant } = byName<VariantName, Variant>(VARIANTS)
