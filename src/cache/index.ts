/**
 * `millpond/cache`: values in the process and, under that, in Redis, where all processes share them.
 *
 * URL: `redis://user:password@host:6379/0` and whatever else the Redis store takes, or `memory:` for the process alone.
 * The path of a call: here → cached-function.ts → loading/loader.ts (one load per key) → layers.ts (what is known) →
 * memory/memory.ts and redis/redis-layer.ts. How values are kept in Redis, for all languages: contract/cache/README.md.
 */
import '../values/runtime/runtime.ts'
import { MillpondError } from '../values/errors/errors.ts'
import { safeText } from '../values/errors/safe-error.ts'
import { kindOf } from '../values/time/duration.ts'
import { type Cached, cachedFunction } from './cached-function.ts'
import { errorReporter } from './error-reporter.ts'
import { Layers } from './layers.ts'
import { type Load, Loader, type LoaderCounts } from './loading/loader.ts'
import {
  type CacheOptions,
  checkCacheOptions,
  checkSetOptions,
  checkWrapOptions,
  type SetOptions,
  type WrapOptions,
  withJitter,
} from './options.ts'
import { ChangeTracker, NO_OTHERS } from './redis/change-tracker.ts'
import { Codec } from './redis/codec.ts'
import { checkKey, checkTag } from './redis/keys.ts'
import { RecordStructures } from './redis/record-structures.ts'
import { RedisLayer } from './redis/redis-layer.ts'

export type { Cached } from './cached-function.ts'
export type { Load, LoadContext } from './loading/loader.ts'
export type { CacheOptions, CallOptions, LifeOptions, SetOptions, WrapOptions } from './options.ts'
export type { Rendered, RequestHeaders } from './ready-answer.ts'

/** Counts since the cache was opened, and what there is now. */
export interface CacheStats extends LoaderCounts {
  /** Values that were found in Redis. */
  found: number
  /** What was found in Redis and could not be read. */
  corrupt: number
  /** What is kept in the process, and what that weighs in bytes, roughly. */
  entries: number
  bytes: number
  /** Whether Redis answers; false without one. */
  redis: boolean
  /** Whether what other processes change is heard at once; if not, it is known after `drift` at the latest. */
  tracking: boolean
}

export class Cache {
  readonly #layers: Layers
  readonly #tracker: ChangeTracker | undefined
  readonly #counts: LoaderCounts = { hits: 0, stale: 0, loads: 0, failed: 0, joined: 0, waited: 0, cancelled: 0 }
  #closed = false

  private constructor(layers: Layers, tracker?: ChangeTracker) {
    this.#layers = layers
    this.#tracker = tracker
  }

  /**
   * Resolves when Redis has answered. An open cache keeps no process alive.
   * @param url `redis://…`, `rediss://…`, several hosts for a cluster, or `memory:`
   * @throws InvalidOption, UnknownScheme, StoreUnavailable, DriverMissing: without ioredis, NotSupported: it is older than 5.3
   * @example
   * await using cache = await Cache.open('redis://localhost')
   * const product = cache.wrap(loadProduct, { key: (id: number) => `product:${id}`, ttl: '1m', stale: '10m' })
   * const one = await product(42)
   */
  static async open(url: string | URL, options: CacheOptions = {}): Promise<Cache> {
    const { redis: given, maxValue, drift, ...checked } = checkCacheOptions(options)
    const onError = errorReporter(checked.onError)
    const settings = { memory: checked.memory, drift, onError }
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(String(url))?.[1]?.toLowerCase()
    if (scheme === 'memory') {
      return new Cache(new Layers(undefined, NO_OTHERS, new Codec(undefined, maxValue), settings))
    }
    if (scheme !== 'redis' && scheme !== 'rediss') {
      const got = scheme === undefined ? kindOf(url) : `${scheme}:`
      throw new MillpondError('UnknownScheme', `a cache is at redis:, rediss: or memory:; got ${got}`)
    }
    const redis = await RedisLayer.open(String(url), given)
    const { client, keys } = redis
    const codec = new Codec(new RecordStructures(redis), maxValue, (error) => {
      const message = `the shared record structures cannot be used, so values are written without: ${safeText(error)}`
      onError(new MillpondError('PayloadNotDecodable', message, { cause: error }), keys.structures)
    })
    const tracker = new ChangeTracker(client, { prefixes: [keys.values, keys.tags], channel: keys.channel, drift })
    const layers = new Layers(redis, tracker, codec, settings)
    await tracker.start(layers)
    return new Cache(layers, tracker)
  }

  /**
   * A function whose values are cached. Errors of the loader go to everyone who waits and are never kept; they end no value that is there.
   * @param load loads the value of an input; called once at a time per key, in all processes together
   * @throws InvalidOption, InvalidName: of a tag, Closed
   */
  wrap<In = void, Out = unknown>(load: Load<In, Out>, options: WrapOptions<In>): Cached<In, Out> {
    this.#assertOpen()
    const checked = checkWrapOptions(load, options)
    const loader = new Loader(load, checked, this.#layers, this.#counts)
    const keyOf = (input: In): string => {
      this.#assertOpen()
      return checked.key(input)
    }
    return cachedFunction<In, Out>(keyOf, loader, this.#layers, (key) => this.invalidate(key))
  }

  /**
   * The value, if it is there and fresh; nothing is loaded. `undefined` also for one that is undefined itself.
   * @throws InvalidName, PayloadNotDecodable, StoreUnavailable, StoreFailed, Closed
   */
  async get(key: string): Promise<unknown> {
    this.#assertOpen()
    const name = checkKey(key)
    const layers = this.#layers
    const known = layers.memory.get(name)
    if (known !== undefined && layers.standing(known, performance.now()) === 'fresh') {
      this.#counts.hits++
      return layers.valueIn(known)
    }
    if (layers.redis === undefined) return undefined
    const load = layers.track(name)
    try {
      const { entry } = await layers.look(layers.redis, load, 'value')
      if (entry === undefined || load.cancelled || entry.age(performance.now()) !== 'fresh') return undefined
      return await layers.valueIn(entry)
    } finally {
      layers.untrack(load)
    }
  }

  /**
   * Stores a value. A load of the key that is under way is begun anew, in whichever process, and finds this one.
   * @throws InvalidName, InvalidOption, PayloadNotEncodable, PayloadTooLarge, StoreUnavailable, StoreFull, StoreFailed, Closed
   */
  async set(key: string, value: unknown, options: SetOptions): Promise<void> {
    this.#assertOpen()
    const name = checkKey(key)
    const { life, tags } = checkSetOptions(options)
    const lives = withJitter(life)
    const layers = this.#layers
    const { redis } = layers
    const load = layers.track(name, tags)
    try {
      const begun = layers.begin()
      load.markers = redis === undefined ? layers.knownMarkers(load) : await layers.lookUpMarkers(redis, tags)
      const encoded = redis === undefined ? undefined : await layers.encode(value, lives, load.markers)
      if (encoded !== undefined) await redis?.put(name, encoded)
      layers.invalidated(name, load)
      layers.keep(load, value, lives, { version: encoded?.version ?? '', encoded, begun, wanted: 'value' })
    } finally {
      layers.untrack(load)
    }
  }

  /**
   * Ends the value, here at once and everywhere as soon as it is heard. A load that is under way is begun anew, in
   * whichever process: what it would have brought is not stored. If it rejects, other processes may know nothing of it:
   * repeat it.
   * @throws InvalidName, StoreUnavailable, StoreFailed, Closed
   */
  async invalidate(key: string): Promise<void> {
    await this.delete(key)
  }

  /** As `invalidate`. @returns whether there was a value @throws InvalidName, StoreUnavailable, StoreFailed, Closed */
  async delete(key: string): Promise<boolean> {
    this.#assertOpen()
    const name = checkKey(key)
    const { redis, memory } = this.#layers
    const had = memory.peek(name) !== undefined
    this.#layers.forget(name)
    try {
      return redis === undefined ? had : (await redis.drop(name)) === true
    } finally {
      this.#layers.invalidated(name)
    }
  }

  /**
   * Ends every value that has the tag, at the cost of one. Loads with the tag that are under way are begun anew.
   * @throws InvalidName, StoreUnavailable, StoreFull, StoreFailed, Closed
   */
  async invalidateTag(tag: string): Promise<void> {
    this.#assertOpen()
    const name = checkTag(tag)
    this.#layers.forgetTag(name)
    try {
      await this.#layers.redis?.renewMarker(name)
    } finally {
      this.#layers.invalidatedTag(name)
    }
  }

  stats(): CacheStats {
    const { memory, counts, redis } = this.#layers
    return {
      ...this.#counts,
      ...counts,
      entries: memory.size,
      bytes: memory.bytes,
      redis: redis?.available ?? false,
      tracking: this.#tracker?.on ?? false,
    }
  }

  /** Nothing is answered any more. Calls under way reject with `Closed` where they need Redis. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#tracker?.close()
    this.#layers.redis?.close()
    this.#layers.memory.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #assertOpen(): void {
    if (this.#closed) throw new MillpondError('Closed', 'The cache is closed; open a new one to go on.')
  }
}
