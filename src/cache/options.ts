/** Checks of what callers pass. */

import type { Client } from '../stores/redis-client/settings.ts'
import { type Duration, kindOf, LONGEST_TIMER, milliseconds, shown } from '../values/duration.ts'
import { MillpondError } from '../values/errors.ts'
import { checkOptions, isFunction, isSignal, type Rules } from '../values/options.ts'
import { checkTags } from './names.ts'
import type { Lives } from './stored.ts'

export interface CacheOptions {
  /** What all keys in Redis begin with; caches of different prefixes share nothing. `cache` unless given. */
  prefix?: string
  /** Most that is kept in the process: bytes, or a text such as `'64mb'`, which is what it is unless given. 0: nothing. */
  memory?: number | `${number}${'kb' | 'mb' | 'gb'}`
  /** How long a process may answer what another has invalidated, whatever happens to its connections. `'5s'` unless given; from 100 ms. */
  drift?: Duration
  /** How long a call to Redis may take, after which Redis counts as gone. `'2s'` unless given. */
  timeout?: Duration
  /** Largest value, encoded, in bytes or as a text. `'1gb'` unless given. */
  maxValue?: number | `${number}${'kb' | 'mb' | 'gb'}`
  /** A Redis Cluster; as the store's option. */
  cluster?: boolean
  /** A Redis or Cluster of ioredis, which stays the caller's to close. */
  client?: Client
  /** Told of values in Redis that cannot be read, and of refreshes in the background that fail. Unless given: a warning of the process, once a minute. */
  onError?: (error: MillpondError, key: string) => void
}

export interface CheckedCacheOptions {
  redis: { prefix?: string; timeout?: number; cluster?: boolean; client?: Client }
  memory: number
  drift: number
  maxValue: number
  onError: ((error: MillpondError, key: string) => void) | undefined
}

/** How long a value lives. */
export interface LifeOptions {
  /** How long it is good. */
  ttl: Duration
  /** How long after that it is answered while a new one is made. 0 unless given. */
  stale?: Duration
  /** How long after `ttl` it is answered if the loader fails or is too slow, or Redis is gone. 0 unless given. */
  staleIfError?: Duration
  /** By what part of it the `ttl` may be shorter, at random, so that values of one moment do not all end in one. 0.1 unless given. */
  jitter?: number
}

export interface SetOptions extends LifeOptions {
  tags?: readonly string[]
}

export interface WrapOptions<In> extends LifeOptions {
  /** What is cached under one text is one value, whoever asks: it must hold all that the value depends on. */
  key: (input: In) => string
  /** How long `null` and `undefined` are kept. 0 unless given: not at all. */
  negative?: Duration
  /** By these the value can be invalidated with others. */
  tags?: readonly string[] | ((input: In) => readonly string[])
  /** How long a caller waits at most. `'30s'` unless given; at least 100 ms. */
  timeout?: Duration
}

export interface CallOptions {
  /** Lets this caller leave: rejects with its reason. When the last has left, the load is aborted. */
  signal?: AbortSignal
}

export interface Life extends Lives {
  jitter: number
}

export interface CheckedWrapOptions<In> {
  key: (input: In) => string
  tags: (input: In) => readonly string[]
  life: Life
  negative: number
  timeout: number
}

const UNITS = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 } as const

function bytesOf(given: unknown, name: string, most: number): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(kb|mb|gb)$/.exec(typeof given === 'string' ? given : '') ?? []
  const bytes = unit === 'kb' || unit === 'mb' || unit === 'gb' ? Math.round(Number(number) * UNITS[unit]) : given
  if (typeof bytes === 'number' && Number.isInteger(bytes) && bytes >= 0 && bytes <= most) return bytes
  throw new MillpondError(
    'InvalidOption',
    `${name} must be a whole number of bytes from 0 to ${most}, or a text such as '64mb'; got ${shown(given)}`,
  )
}

const MAX_MEMORY = 1024 ** 4
/** What fits the head of a stored value, its count of chunks and V8's buffers. */
const MAX_VALUE = 4 * 1024 ** 3 - 1024

const between = (name: string, least: number, most: number) => (value: unknown) =>
  milliseconds(value, name, least, most) >= 0

export function checkCacheOptions(options: CacheOptions): CheckedCacheOptions {
  const given = checkOptions<CacheOptions>(
    options,
    {
      prefix: (value) => typeof value === 'string' || 'a text',
      memory: (value) => bytesOf(value, 'memory', MAX_MEMORY) >= 0,
      drift: between('drift', 100, 3_600_000),
      timeout: between('timeout', 100, 600_000),
      maxValue: (value) => bytesOf(value, 'maxValue', MAX_VALUE) >= 0,
      cluster: (value) => typeof value === 'boolean' || 'true or false',
      client: (value) => typeof value === 'object' || 'a Redis or Cluster of ioredis',
      onError: isFunction,
    },
    'Cache.open',
  )
  return {
    redis: {
      ...(given.prefix === undefined ? {} : { prefix: given.prefix }),
      ...(given.timeout === undefined ? {} : { timeout: milliseconds(given.timeout, 'timeout') }),
      ...(given.cluster === undefined ? {} : { cluster: given.cluster }),
      ...(given.client === undefined ? {} : { client: given.client }),
    },
    memory: bytesOf(given.memory ?? '64mb', 'memory', MAX_MEMORY),
    drift: milliseconds(given.drift ?? '5s', 'drift'),
    maxValue: bytesOf(given.maxValue ?? '1gb', 'maxValue', MAX_VALUE),
    onError: given.onError,
  }
}

const LIFE: Rules<LifeOptions> = {
  ttl: between('ttl', 1, LONGEST_TIMER),
  stale: between('stale', 0, LONGEST_TIMER),
  staleIfError: between('staleIfError', 0, LONGEST_TIMER),
  jitter: (value) => (typeof value === 'number' && value >= 0 && value <= 1) || 'a number from 0 to 1',
}

const lifeOf = ({ ttl, stale, staleIfError, jitter }: LifeOptions): Life => ({
  fresh: milliseconds(ttl, 'ttl'),
  stale: milliseconds(stale ?? 0, 'stale'),
  error: milliseconds(staleIfError ?? 0, 'staleIfError'),
  jitter: jitter ?? 0.1,
})

/** Of one value: its `fresh` is shorter at random. */
export function withJitter({ fresh, stale, error, jitter }: Life): Lives {
  return { fresh: Math.max(1, Math.round(fresh * (1 - Math.random() * jitter))), stale, error }
}

export function checkSetOptions(options: SetOptions): { life: Life; tags: readonly string[] } {
  const given = checkOptions<SetOptions>(
    options,
    { ...LIFE, tags: (value) => checkTags(value).length >= 0 },
    'cache.set',
    ['ttl'],
  )
  return { life: lifeOf(given), tags: checkTags(given.tags ?? []) }
}

export function checkWrapOptions<In>(load: unknown, options: WrapOptions<In>): CheckedWrapOptions<In> {
  const verdict = isFunction(load)
  if (verdict !== true)
    throw new MillpondError('InvalidOption', `cache.wrap takes ${verdict} first; got ${kindOf(load)}`)
  const given = checkOptions<WrapOptions<In>>(
    options,
    {
      ...LIFE,
      key: isFunction,
      negative: between('negative', 0, LONGEST_TIMER),
      tags: (value) => typeof value === 'function' || checkTags(value).length >= 0,
      timeout: between('timeout', 100, LONGEST_TIMER),
    },
    'cache.wrap',
    ['key', 'ttl'],
  )
  const { tags = [] } = given
  const always = typeof tags === 'function' ? undefined : checkTags(tags)
  return {
    key: given.key,
    tags: always === undefined && typeof tags === 'function' ? (input) => checkTags(tags(input)) : () => always ?? [],
    life: lifeOf(given),
    negative: milliseconds(given.negative ?? 0, 'negative'),
    timeout: milliseconds(given.timeout ?? '30s', 'timeout'),
  }
}

export function signalOf(options: CallOptions | undefined): AbortSignal | undefined {
  if (options === undefined) return undefined
  return checkOptions(options, { signal: isSignal }, 'a call of a cached function').signal
}
