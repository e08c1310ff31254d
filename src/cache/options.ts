/** Checks of what callers pass. */
import type { GivenClient } from '../stores/redis-client/settings.ts'
import type { MillpondError } from '../values/errors/errors.ts'
import {
  checkFunction,
  checkOptions,
  isBoolean,
  isDuration,
  isFunction,
  type Rules,
} from '../values/options/options.ts'
import { bytesOf, type Size } from '../values/options/sizes.ts'
import { type Duration, milliseconds } from '../values/time/duration.ts'
import { checkTags } from './redis/keys.ts'
import type { Lives } from './redis/stored-value.ts'

export interface CacheOptions {
  /**
   * What all keys in Redis begin with; caches of different prefixes share nothing. 1 to 64 of `A–Z a–z 0–9 _ - .`;
   * `cache` unless given.
   */
  prefix?: string | undefined
  /** Most that is kept in the process, up to 1 TB. `'64mb'` unless given; 0: nothing is kept. */
  memory?: Size | undefined
  /**
   * How long a process may answer what another has invalidated, whatever happens to its connections. `'5s'` unless
   * given; 100 ms to 1 hour.
   */
  drift?: Duration | undefined
  /** How long a call to Redis may take; after that Redis counts as gone. `'2s'` unless given; 100 ms to 10 minutes. */
  timeout?: Duration | undefined
  /** Largest value, encoded, up to 4 GB less 1 kB. `'1gb'` unless given. */
  maxValue?: Size | undefined
  /** The URL's one host is a node of a Redis Cluster. false unless given; several hosts are always a cluster. */
  cluster?: boolean | undefined
  /** A Redis or Cluster of ioredis, which stays the caller's to close. Unless given, one is made from the URL. */
  client?: GivenClient | undefined
  /**
   * Called with values in Redis that cannot be read, and with refreshes in the background that fail. Unless given: a
   * warning of the process, once a minute.
   */
  onError?: ((error: MillpondError, key: string) => void) | undefined
}

/** How long a value lives. Durations are at most 24 days. */
export interface LifeOptions {
  /** How long it is fresh; at least 1 ms. */
  ttl: Duration
  /** How long after that it is still answered while a new one is loaded in the background. 0 unless given. */
  stale?: Duration | undefined
  /** How long after `ttl` it is answered if the loader fails or is too slow, or Redis is gone. 0 unless given. */
  staleIfError?: Duration | undefined
  /**
   * The largest part of `ttl` that is taken off at random, so that values stored together do not expire together. 0 to
   * 1; 0.1 unless given.
   */
  jitter?: number | undefined
}

export interface SetOptions extends LifeOptions {
  /** By these the value can be invalidated with others: at most 32, of 1 to 255 bytes each. None unless given. */
  tags?: readonly string[] | undefined
}

export interface WrapOptions<In> extends LifeOptions {
  /** One text is one value for all callers, so it must hold everything that the value depends on. 1 to 1,024 bytes. */
  key: (input: In) => string
  /** How long `null` and `undefined` are kept; at most 24 days. 0 unless given: not at all. */
  negative?: Duration | undefined
  /** By these the value can be invalidated with others: at most 32, of 1 to 255 bytes each. None unless given. */
  tags?: readonly string[] | ((input: In) => readonly string[]) | undefined
  /**
   * How long a caller waits at most, before it gets an older value within `staleIfError`, or `TimedOut`. `'30s'` unless
   * given; 100 ms to 24 days.
   */
  timeout?: Duration | undefined
}

export interface CallOptions {
  /** Lets this caller leave: rejects with its reason. When the last has left, the load is aborted. */
  signal?: AbortSignal | undefined
}

export interface Life extends Lives {
  jitter: number
}

const MAX_MEMORY = 1024 ** 4
/** What fits the head of a stored value, its count of chunks and V8's buffers. */
const MAX_VALUE = 4 * 1024 ** 3 - 1024

/** @throws InvalidOption */
export function checkCacheOptions(options: CacheOptions) {
  const rules: Rules<CacheOptions> = {
    prefix: (value) => typeof value === 'string' || 'a text',
    memory: (value) => bytesOf(value, 'memory', 0, MAX_MEMORY) >= 0,
    drift: isDuration(100, 3_600_000),
    timeout: isDuration(100, 600_000),
    maxValue: (value) => bytesOf(value, 'maxValue', 0, MAX_VALUE) >= 0,
    cluster: isBoolean,
    client: (value) => typeof value === 'object' || 'a Redis or Cluster of ioredis',
    onError: isFunction,
  }
  const { prefix, timeout, cluster, client, ...given } = checkOptions<CacheOptions>(options, rules, 'Cache.open')
  return {
    redis: { prefix, timeout: timeout && milliseconds(timeout, 'timeout'), cluster, client },
    memory: bytesOf(given.memory ?? '64mb', 'memory', 0, MAX_MEMORY),
    drift: milliseconds(given.drift ?? '5s', 'drift'),
    maxValue: bytesOf(given.maxValue ?? '1gb', 'maxValue', 0, MAX_VALUE),
    onError: given.onError,
  }
}

const LIFE: Rules<LifeOptions> = {
  ttl: isDuration(),
  stale: isDuration(0),
  staleIfError: isDuration(0),
  jitter: (value) => (typeof value === 'number' && value >= 0 && value <= 1) || 'a number from 0 to 1',
}

const lifeOf = ({ ttl, stale = 0, staleIfError = 0, jitter = 0.1 }: LifeOptions): Life => ({
  fresh: milliseconds(ttl, 'ttl'),
  stale: milliseconds(stale, 'stale'),
  error: milliseconds(staleIfError, 'staleIfError'),
  jitter,
})

/** Of one value: its `fresh` is shorter at random. */
export function withJitter({ fresh, stale, error, jitter }: Life): Lives {
  return { fresh: Math.max(1, Math.round(fresh * (1 - Math.random() * jitter))), stale, error }
}

/** @throws InvalidOption, InvalidName */
export function checkSetOptions(options: SetOptions): { life: Life; tags: readonly string[] } {
  const rules: Rules<SetOptions> = { ...LIFE, tags: (value) => checkTags(value).length >= 0 }
  const given = checkOptions<SetOptions>(options, rules, 'cache.set', ['ttl'])
  return { life: lifeOf(given), tags: checkTags(given.tags ?? []) }
}

/** @throws InvalidOption, InvalidName */
export function checkWrapOptions<In>(load: unknown, options: WrapOptions<In>) {
  checkFunction(load, 'cache.wrap takes a function first')
  const rules: Rules<WrapOptions<In>> = {
    ...LIFE,
    key: isFunction,
    negative: isDuration(0),
    tags: (value) => typeof value === 'function' || checkTags(value).length >= 0,
    timeout: isDuration(100),
  }
  const given = checkOptions<WrapOptions<In>>(options, rules, 'cache.wrap', ['key', 'ttl'])
  const { key, tags = [], negative = 0, timeout = '30s' } = given
  const always = typeof tags === 'function' ? [] : checkTags(tags)
  return {
    key,
    tags: typeof tags === 'function' ? (input: In) => checkTags(tags(input)) : () => always,
    life: lifeOf(given),
    negative: milliseconds(negative, 'negative'),
    timeout: milliseconds(timeout, 'timeout'),
  }
}

export type CheckedWrapOptions<In> = ReturnType<typeof checkWrapOptions<In>>
